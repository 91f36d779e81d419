import type { ComponentChildren, JSX } from 'preact';
import { announce, announcement } from './announcer.ts';
import { isOutOfReach } from './client.ts';
import { type ConsoleRoute, linkTo } from './logic/page/route.ts';
import { AccountPage } from './pages/account.tsx';
import { AddHostPage } from './pages/add-host.tsx';
import { AuditPage } from './pages/audit.tsx';
import { DevicePage } from './pages/device.tsx';
import { KeysPage } from './pages/keys.tsx';
import { LoginPage } from './pages/login.tsx';
import { NetworkPage } from './pages/network.tsx';
import { NetworkEventsPage } from './pages/network-events.tsx';
import { NetworkPeerPage } from './pages/network-peer.tsx';
import { NetworkRulesPage } from './pages/network-rules.tsx';
import { NetworksPage } from './pages/networks.tsx';
import { PeersPage } from './pages/peers.tsx';
import { KeptPhone } from './pages/phone.tsx';
import { UsersPage } from './pages/users.tsx';
import { BusyButton } from './parts/forms/busy-button.tsx';
import { PageTitle } from './parts/page-title.tsx';
import { Loading, Problem } from './parts/request-state.tsx';
import { showsExactTimes, toggleExactTimes } from './parts/time.tsx';
import { route } from './router.ts';
import { canAdminister, isLimited, logOut, openSession, profile, startProblem } from './session.ts';

export function App(): JSX.Element {
  return (
    <>
      {(!profile.value || startProblem.value !== null) && <KeptPhone />}
      <Content />
      <div class="announcement" role="status" aria-live="polite">
        {announcement.value !== '' && <p>{announcement.value}</p>}
      </div>
    </>
  );
}

function Content(): JSX.Element {
  if (startProblem.value !== null) {
    return (
      <main class="narrow">
        <h1>cpn</h1>
        <Problem text={startProblem.value} />
        <BusyButton onClick={openSession}>Try again</BusyButton>
      </main>
    );
  }
  if (profile.value === undefined) {
    return (
      <main class="narrow" aria-busy="true">
        <Loading />
      </main>
    );
  }
  if (profile.value === null) return <LoginPage />;
  return (
    <>
      <header class="top">
        <a class="skip" href={location.hash} onClick={skip}>
          Skip to the content
        </a>
        <a class="brand" href={linkTo({ page: 'networks' })}>
          cpn
        </a>
        <nav aria-label="Main">
          <NavLink to={{ page: 'networks' }} isCurrent={'network' in route.value}>
            Networks
          </NavLink>
          {canAdminister() && !isLimited() && <NavLink to={{ page: 'users' }}>Users</NavLink>}
          {canAdminister() && !isLimited() && <NavLink to={{ page: 'audit' }}>Audit</NavLink>}
          <NavLink to={{ page: 'account' }}>Account</NavLink>
        </nav>
        <span class="who">{profile.value.email}</span>
        <button type="button" class="quiet" aria-pressed={showsExactTimes.value} onClick={toggleExactTimes}>
          Exact times
        </button>
        <BusyButton class="quiet" onClick={() => logOut().catch((error: Error) => announce(error.message))}>
          Log out
        </BusyButton>
      </header>
      <main id="content" tabIndex={-1}>
        <Problem text={isOutOfReach.value ? 'The control plane does not answer. Trying again.' : null} />
        <KeptPhone />
        <Page at={route.value} />
      </main>
    </>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById('content')?.focus();
}

interface NavLinkProps {
  readonly to: ConsoleRoute;
  readonly isCurrent?: boolean;
  readonly children: ComponentChildren;
}

function NavLink({ to, isCurrent = false, children }: NavLinkProps): JSX.Element {
  const isHere = isCurrent || route.value.page === to.page;
  return (
    <a href={linkTo(to)} aria-current={isHere ? 'page' : undefined}>
      {children}
    </a>
  );
}

/** The page of a route. Its key gives another network a fresh page without earlier state. */
function Page({ at }: { readonly at: ConsoleRoute }): JSX.Element {
  if ('network' in at) {
    const { page, network } = at;
    if (page === 'peer') return <NetworkPeerPage key={`${network} ${at.peer}`} id={network} peer={at.peer} />;
    if (page === 'events') return <NetworkEventsPage key={network} id={network} />;
    if (page === 'rules') return <NetworkRulesPage key={network} id={network} />;
    if (page === 'peers') return <PeersPage key={network} id={network} />;
    if (page === 'add-host') return <AddHostPage key={network} id={network} />;
    if (page === 'keys') return <KeysPage key={network} id={network} />;
    return <NetworkPage key={network} id={network} />;
  }
  if (at.page === 'device') return <DevicePage key={at.code} code={at.code} />;
  if (at.page === 'networks') return <NetworksPage />;
  if (at.page === 'audit') return <AuditPage />;
  if (at.page === 'users') return <UsersPage />;
  if (at.page === 'account') return <AccountPage />;
  return (
    <>
      <PageTitle>There is no such page</PageTitle>
      <p>
        Go to <a href={linkTo({ page: 'networks' })}>the networks</a>.
      </p>
    </>
  );
}
