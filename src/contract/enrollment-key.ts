import * as z from 'zod';
import { PeerType, Tags } from './peer.ts';
import { identifier, instant, nameShown, requiredText, text } from './text.ts';

/** The longest lifetime of a peer: ten years. */
const mostPeerHours = 87_600;

export const CreateEnrollmentKey = z
  .object({
    name: requiredText(120),
    max_uses: z.int().min(1).max(10).default(1),
    expires_in_hours: z.int().min(1).max(168).default(24),
    peer_types: z
      .array(PeerType)
      .min(1, { error: 'must name a type, or be left out' })
      .max(PeerType.options.length)
      .optional()
      .meta({ description: 'What a peer may enrol as with the key; absent means any type.' }),
    routes: z.array(text(32)).max(50).optional().meta({
      description: 'Routes of the network: a connector that enrols with the key serves no others. Absent means any.',
    }),
    tags: Tags.optional().meta({
      description: 'Tags of the peers that enrol with the key. Only owners and admins set them.',
    }),
    peer_expires_in_hours: z.int().min(1).max(mostPeerHours).optional().meta({
      description: 'A peer that enrols with the key expires so many hours after it enrolled. Absent means never.',
    }),
  })
  .meta({ id: 'CreateEnrollmentKey' });
export type CreateEnrollmentKey = z.infer<typeof CreateEnrollmentKey>;

/** A key in a list, without the token. */
export const EnrollmentKey = z
  .object({
    id: identifier,
    name: nameShown,
    max_uses: z.int().min(1),
    uses: z.int().min(0),
    expires_at: instant,
    peer_types: z.array(PeerType).optional().meta({ description: 'Absent means any type.' }),
    routes: z.array(z.cidrv4()).optional().meta({ description: 'Absent means any route.' }),
    tags: z.array(z.string()).optional().meta({ description: 'Tags of its peers. Absent for none.' }),
    peer_expires_in_hours: z
      .int()
      .min(1)
      .optional()
      .meta({ description: 'Absent means that its peers do not expire.' }),
  })
  .meta({ id: 'EnrollmentKey' });
export type EnrollmentKey = z.infer<typeof EnrollmentKey>;

/** A key in a list of several networks. */
export const EnrollmentKeyOfNetwork = EnrollmentKey.pick({
  id: true,
  name: true,
  max_uses: true,
  uses: true,
  expires_at: true,
})
  .extend({ network: z.object({ id: identifier, name: nameShown }) })
  .meta({ id: 'EnrollmentKeyOfNetwork' });
export type EnrollmentKeyOfNetwork = z.infer<typeof EnrollmentKeyOfNetwork>;

/** A created key. The token is returned only here. */
export const NewEnrollmentKey = EnrollmentKey.extend({
  enrollment_token: z.string().meta({ minLength: 5, maxLength: 128, pattern: '^cpn_[!-~]+$' }),
}).meta({ id: 'NewEnrollmentKey' });
export type NewEnrollmentKey = z.infer<typeof NewEnrollmentKey>;
