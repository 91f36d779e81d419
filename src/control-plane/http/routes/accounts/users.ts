import * as z from 'zod';
import { OpenSession } from '../../../../contract/auth.ts';
import { page, Refusal, reply } from '../../../../contract/reply.ts';
import { LinkUser } from '../../../../contract/single-sign-on.ts';
import { ChangedUser, ChangeUser, CreateUser, SessionsEnded, User, UserRemoval } from '../../../../contract/user.ts';
import { Secret } from '../../../../core/crypto/secret.ts';
import { administrators, administratorsInSession, owners, ownersInSession } from '../../../domain/caller.ts';
import { linkUser, unlinkUser } from '../../../service/accounts/link-user.ts';
import { listSessions } from '../../../service/accounts/sessions.ts';
import {
  changeUser,
  checkEmailFree,
  createUser,
  deleteUser,
  endSessionsOf,
  listUsers,
  lowersRights,
} from '../../../service/accounts/users.ts';
import type { Context } from '../../../service/context.ts';
import { type App, userOf } from '../../app.ts';
import type { FailureLimit } from '../../limits.ts';
import { PageQuery, paging, readSlice, type SendPage, toPageReply } from '../paging.ts';
import { done, Nothing, sessionTimes, UserPath, UserSessionPath } from '../parts.ts';

const Which = z.object({ keep_keys: z.enum(['true', 'false']).optional() });

export function addUserRoutes(app: App, context: Context, sendPage: SendPage, limitFailures: FailureLimit): void {
  app.route({
    method: 'GET',
    url: '/api/users',
    config: { access: administrators },
    schema: {
      operationId: 'listUsers',
      summary: "The organization's users",
      description: paging,
      querystring: PageQuery,
      response: { 200: page(User) },
    },
    handler: async (request, response) => {
      const caller = userOf(request);
      const users = await listUsers(context, caller, readSlice(request.query));
      return sendPage(response, `users of ${caller.organizationId}`, User, toPageReply(users, request.query));
    },
  });

  app.route({
    method: 'POST',
    url: '/api/users',
    config: {
      access: administratorsInSession,
      checkFields: (fields: Partial<CreateUser>) => checkEmailFree(context, fields),
    },
    schema: {
      operationId: 'createUser',
      summary: 'Make a user',
      description:
        'Only an owner may make an owner. An e-mail address is unique across organizations, because it identifies a login. Creating a user ' +
        'requires a session, and current_password if the login of that session is more than 5 minutes ago: neither a token nor a stolen ' +
        'session creates a user that outlives it. A wrong password is a 403. After as many as there may be failed logins in a minute, this session gets a 429.',
      body: CreateUser,
      response: { 201: reply(User) },
    },
    handler: async (request, response) => {
      const { email, password, role, networks = null, current_password: own } = request.body;
      const fields = { email, password: new Secret(password), role, networks, own };
      const create = () => createUser(context, userOf(request), fields);
      const user = await (own === undefined ? create() : limitFailures(request, 'password', create));
      return response.code(201).send({ data: user });
    },
  });

  app.route({
    method: 'PATCH',
    url: '/api/users/:user',
    config: {
      access: owners,
      isRemoval: (request) =>
        lowersRights(context, userOf(request), UserPath.parse(request.params).user, ChangeUser.parse(request.body)),
    },
    schema: {
      operationId: 'changeUser',
      summary: 'Change the role of a user, or the networks to which it is limited',
      description:
        'It applies from the next request of the user on. The last owner keeps the role. A higher role and more networks require a session, and ' +
        'current_password where the login of that session is more than 5 minutes ago. The usable enrolment keys of a user that becomes a viewer ' +
        'are revoked, and those of networks that a user loses, unless keep_keys is set.',
      params: UserPath,
      body: ChangeUser,
      response: { 200: reply(ChangedUser), 404: Refusal },
    },
    handler: async (request) => {
      const change = () => changeUser(context, userOf(request), request.params.user, request.body);
      const isGuess = request.body.current_password !== undefined;
      return { data: await (isGuess ? limitFailures(request, 'password', change) : change()) };
    },
  });

  app.route({
    method: 'DELETE',
    url: '/api/users/:user',
    config: { access: administrators },
    schema: {
      operationId: 'deleteUser',
      summary: 'Remove a user; its sessions and personal tokens end immediately',
      description:
        'Only an owner may remove an owner, and no user may remove itself. The usable enrolment keys that the user made are revoked, as far ' +
        'back as the audit goes; with keep_keys=true they stay.',
      params: UserPath,
      querystring: Which,
      response: { 200: reply(UserRemoval), 404: Refusal },
    },
    handler: async (request) => {
      const keepsKeys = request.query.keep_keys === 'true';
      return { data: await deleteUser(context, userOf(request), request.params.user, { keepsKeys }) };
    },
  });

  app.route({
    method: 'PUT',
    url: '/api/users/:user/link',
    config: { access: ownersInSession },
    schema: {
      operationId: 'linkUser',
      summary: 'Link a user to a user of the issuer of single sign-on, whose groups then give its role',
      description:
        'The subject of a refused login is in the audit. Needs `current_password` where the login of that session is more than 5 minutes ago.',
      params: UserPath,
      body: LinkUser,
      response: { 200: Nothing, 404: Refusal },
    },
    handler: async (request) => {
      const link = () => linkUser(context, userOf(request), request.params.user, request.body);
      const isGuess = request.body.current_password !== undefined;
      return done(isGuess ? limitFailures(request, 'password', link) : link());
    },
  });

  app.route({
    method: 'DELETE',
    url: '/api/users/:user/link',
    config: { access: ownersInSession },
    schema: {
      operationId: 'unlinkUser',
      summary: 'Unlink a user from the issuer of single sign-on; its sessions end, and its password stays',
      params: UserPath,
      response: { 200: Nothing, 404: Refusal },
    },
    handler: async (request) => done(unlinkUser(context, userOf(request), request.params.user)),
  });

  app.route({
    method: 'GET',
    url: '/api/users/:user/sessions',
    config: { access: administrators },
    schema: {
      operationId: 'listUserSessions',
      summary: 'The sessions of a user, without their tokens',
      description: sessionTimes,
      params: UserPath,
      response: { 200: reply(z.array(OpenSession)), 404: Refusal },
    },
    handler: async (request) => ({ data: await listSessions(context, userOf(request), request.params.user) }),
  });

  app.route({
    method: 'DELETE',
    url: '/api/users/:user/sessions',
    config: { access: administrators },
    schema: {
      operationId: 'endUserSessions',
      summary: 'End all sessions of a user; its personal tokens stay',
      description: 'Only an owner may end the sessions of an owner.',
      params: UserPath,
      response: { 200: reply(SessionsEnded), 404: Refusal },
    },
    handler: async (request) => ({ data: await endSessionsOf(context, userOf(request), request.params.user, null) }),
  });

  app.route({
    method: 'DELETE',
    url: '/api/users/:user/sessions/:session',
    config: { access: administrators },
    schema: {
      operationId: 'endUserSession',
      summary: 'End a session of a user',
      description: 'Only an owner may end the sessions of an owner.',
      params: UserSessionPath,
      response: { 200: Nothing, 404: Refusal },
    },
    handler: async (request) => {
      const { user, session } = request.params;
      return done(endSessionsOf(context, userOf(request), user, session));
    },
  });
}
