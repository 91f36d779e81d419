import * as z from 'zod';
import { Enrollment } from '../../contract/network.ts';
import { EnrollRequest, IdentityKey, NetworkSecretTag } from '../../contract/peer.ts';
import { Refusal, reply } from '../../contract/reply.ts';
import { Secret } from '../../core/secret.ts';
import type { App } from '../app.ts';
import type { FailureLimit } from '../limits.ts';
import type { NetworkTexts } from '../network-text.ts';
import type { Context } from '../service/context.ts';
import { enroll, readEnrollment } from '../service/enrollment.ts';
import { formatETag } from './etag.ts';

export function addEnrollmentRoute(app: App, context: Context, texts: NetworkTexts, limitFailures: FailureLimit): void {
  app.route({
    method: 'POST',
    url: '/api/networks/enroll',
    config: {
      access: 'anyone',
      checkFields: (fields: Partial<EnrollRequest>) => readEnrollment(context, fields),
    },
    schema: {
      operationId: 'enroll',
      summary: 'Bring a host into the network of an enrolment key',
      description:
        'The enrolment key in the body is the credential. access_token in the reply is a bearer for this peer alone, ' +
        'to read its own network and to change or remove itself. A retry with the same Idempotency-Key, public key and ' +
        'enrolment key gets the same peer, address and access_token and consumes no further use, even of a used-up key. Names are ' +
        'unique within a network, compared as DNS labels: a name that is taken gets a suffix, and the reply has the name given. A key ' +
        'may be for certain types of peers, which a 403 names, and for certain routes, which its connectors are limited to. A host ' +
        'that is in networks already names them in Current-Networks: a key for one of these is a 409, and its use is not taken.',
      body: EnrollRequest,
      // As headers, because a service that does not know them passes over them.
      headers: z.looseObject({
        'idempotency-key': IdempotencyKey.optional(),
        'peer-identity-key': IdentityKey.optional(),
        'network-secret-tag': NetworkSecretTag.optional(),
        'current-networks': CurrentNetworks.optional(),
      }),
      response: { 201: reply(Enrollment), 409: Refusal },
    },
    handler: async (request, response) => {
      const { headers } = request;
      const key = headers['idempotency-key'];
      const beside = {
        idempotencyKey: key === undefined ? null : new Secret(key),
        identityKey: headers['peer-identity-key'] ?? null,
        secretTag: headers['network-secret-tag'] ?? null,
        currentNetworks: headers['current-networks']?.split(', ').map(Number) ?? [],
      };
      const { peer, network, token } = await limitFailures(request, () =>
        enroll(context, request.body, beside, request.ip),
      );
      const { bytes, revision } = await texts.whole(network);
      // The network, which may be large, is written once for all.
      response.code(201).type('application/json; charset=utf-8');
      return response.send(
        withNetwork({ peer, access_token: token.reveal(), network_etag: formatETag(revision) }, bytes) as never,
      );
    },
  });
}

const Beside = reply(Enrollment.omit({ network: true }));

/** The text of the reply, of which the network is written already: `{"data":…}`. */
function withNetwork(data: z.infer<typeof Beside>['data'], network: Buffer): Buffer {
  const beside = JSON.stringify(z.encode(Beside, { data }));
  const member = Buffer.from(',"network":');
  return Buffer.concat([
    Buffer.from(beside.slice(0, -2)),
    member,
    network.subarray('{"data":'.length, -1),
    Buffer.from('}}'),
  ]);
}

const CurrentNetworks = z
  .string()
  .regex(/^\d{1,15}(, \d{1,15}){0,99}$/)
  .meta({ description: 'The ids of the networks that the host is in, such as "1, 3".' });

const IdempotencyKey = z
  .string()
  .min(1)
  .max(255)
  .meta({ description: 'Chosen by the caller, the same for each retry.' });
