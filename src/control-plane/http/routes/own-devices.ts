import * as z from 'zod';
import { ChangeOwnDevice, CreateOwnDevice, OwnDevice, OwnDeviceKey } from '../../../contract/own-device.ts';
import { Refusal, reply } from '../../../contract/reply.ts';
import { readers, readersInSession } from '../../domain/caller.ts';
import { listOwnDevices, removeOwnDevice, renameOwnDevice } from '../../service/accounts/own-devices.ts';
import { createOwnKey } from '../../service/accounts/own-key.ts';
import type { Context } from '../../service/context.ts';
import { type App, userOf } from '../app.ts';
import type { FailureLimit } from '../limits.ts';
import { DevicePath, done, NetworkPath, Nothing } from './parts.ts';

export function addOwnDeviceRoutes(app: App, context: Context, limitFailures: FailureLimit): void {
  app.route({
    method: 'POST',
    url: '/api/networks/:network/own-devices',
    config: { access: readersInSession },
    schema: {
      operationId: 'createOwnDevice',
      summary: 'Make a key with which the caller enrols an own device',
      description:
        'The key is for one admin_device, for 10 minutes, without tags. The peer belongs to the caller: it is suspended when the caller is removed ' +
        'or loses the role that self_enroll of the network names. self_enroll limits how many own devices each user has. It takes a session, and ' +
        'the password where the login of that session is more than 5 minutes ago. A wrong password is a 403. After as many as there may be failed ' +
        'logins in a minute, this session gets a 429.',
      params: NetworkPath,
      body: CreateOwnDevice,
      response: { 201: reply(OwnDeviceKey), 404: Refusal },
    },
    handler: async (request, response) => {
      const { network } = request.params;
      const create = () => createOwnKey(context, userOf(request), network, request.body);
      const isGuess = request.body.password !== undefined;
      return response.code(201).send({ data: await (isGuess ? limitFailures(request, 'password', create) : create()) });
    },
  });

  app.route({
    method: 'GET',
    url: '/api/auth/devices',
    config: { access: readers },
    schema: {
      operationId: 'listOwnDevices',
      summary: "The caller's own devices, in all networks",
      response: { 200: reply(z.array(OwnDevice)) },
    },
    handler: async (request) => ({ data: await listOwnDevices(context, userOf(request)) }),
  });

  app.route({
    method: 'PATCH',
    url: '/api/auth/devices/:peer',
    config: { access: readers },
    schema: {
      operationId: 'changeOwnDevice',
      summary: 'Rename an own device of the caller',
      params: DevicePath,
      body: ChangeOwnDevice,
      response: { 200: reply(OwnDevice), 404: Refusal },
    },
    handler: async (request) => ({
      data: await renameOwnDevice(context, userOf(request), request.params.peer, request.body),
    }),
  });

  app.route({
    method: 'DELETE',
    url: '/api/auth/devices/:peer',
    config: { access: readers },
    schema: {
      operationId: 'removeOwnDevice',
      summary: 'Take an own device of the caller out of its network',
      description: 'A suspended device is a 403: only an admin resumes or removes it.',
      params: DevicePath,
      response: { 200: Nothing, 404: Refusal },
    },
    handler: async (request) => done(removeOwnDevice(context, userOf(request), request.params.peer)),
  });
}
