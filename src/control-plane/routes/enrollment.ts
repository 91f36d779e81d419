import * as z from 'zod';
import { Enrollment } from '../../contract/network.ts';
import { EnrollRequest, IdentityKey, NetworkSecretTag } from '../../contract/peer.ts';
import { reply } from '../../contract/reply.ts';
import { Secret } from '../../core/secret.ts';
import type { App } from '../app.ts';
import type { FailureLimit } from '../limits.ts';
import type { Context } from '../service/context.ts';
import { enroll } from '../service/enrollment.ts';

export function addEnrollmentRoute(app: App, context: Context, limitFailures: FailureLimit): void {
  app.route({
    method: 'POST',
    url: '/api/networks/enroll',
    config: { access: 'anyone' },
    schema: {
      operationId: 'enroll',
      summary: 'Bring a host into the network of an enrolment key',
      description:
        'The enrolment key in the body is the credential. access_token in the reply is a bearer for this peer alone, ' +
        'to read its own network and to change or remove itself. A retry with the same Idempotency-Key, public key and ' +
        'enrolment key gets the same peer, address and access_token and consumes no further use, even of a used-up key.',
      body: EnrollRequest,
      // As headers, because a service that does not know them passes over them.
      headers: z.looseObject({
        'idempotency-key': IdempotencyKey.optional(),
        'peer-identity-key': IdentityKey.optional(),
        'network-secret-tag': NetworkSecretTag.optional(),
      }),
      response: { 201: reply(Enrollment) },
    },
    handler: async (request, response) => {
      const { headers } = request;
      const key = headers['idempotency-key'];
      const beside = {
        idempotencyKey: key === undefined ? null : new Secret(key),
        identityKey: headers['peer-identity-key'] ?? null,
        secretTag: headers['network-secret-tag'] ?? null,
      };
      const { token, ...enrolled } = await limitFailures(request, () =>
        enroll(context, request.body, beside, request.ip),
      );
      return response.code(201).send({ data: { ...enrolled, access_token: token.reveal() } });
    },
  });
}

const IdempotencyKey = z
  .string()
  .min(1)
  .max(255)
  .meta({ description: 'Chosen by the caller, the same for each retry.' });
