import { render } from 'preact';
import { App } from './app.tsx';
import { neutralizeTexts } from './neutralize.ts';
import { endSingleSignOn, isBackFromIssuer, openSession } from './session.ts';

neutralizeTexts();

const place = document.getElementById('app');
if (place !== null) render(<App />, place);
void (isBackFromIssuer() ? endSingleSignOn() : openSession());
