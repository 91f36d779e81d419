import * as z from 'zod';
import { identifier, instant, tokenShown } from '../../contract/text.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import { BadReply } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';
import { decodeId, Field, type Source } from './field.ts';
import { decodeToken } from './map.ts';
import { maxPeers } from './network.ts';

/** A resource as a client gets it: its ids may be words, its tokens are secrets. */
export type Received<Value> = Value extends readonly (infer Item)[]
  ? Received<Item>[]
  : Value extends object
    ? { readonly [Name in keyof Value]: ReceivedField<Name, Value[Name]> }
    : Value;
type ReceivedField<Name, Value> = Name extends 'id' | 'network' | 'peer'
  ? ReceivedId<Value>
  : Name extends 'access_token' | 'device_code'
    ? ReceivedToken<Value>
    : Received<Value>;
type ReceivedId<Value> = Value extends number ? Id : Received<Value>;
type ReceivedToken<Value> = Value extends string ? Secret : Value;

/** Decodes the body of a reply. @throws BadReply */
export type Decoder<Value> = (body: unknown, source: Source) => Value;

/** For strings without `maxLength` in their schema: addresses, prefixes and words. */
const usualLength = 64;

/**
 * A decoder by the contract's schema. It drops unknown properties, and accepts null for absent
 * nullable ones. Errors name the property, never a value, and the resource by `name`.
 */
export function resource<Schema extends z.ZodType>(schema: Schema, name = ''): Decoder<Received<z.output<Schema>>> {
  return (body, source) => decodeField(schema, Field.ofReply(body, source).as(name));
}

/** Like {@link resource}; a reply without an object is an empty one. */
export function optionalResource<Schema extends z.ZodType>(schema: Schema): Decoder<Received<z.output<Schema>>> {
  return (body, source) => {
    const field = Field.ofReply(body, source);
    return decodeField(schema, field.isRecord() ? field : new Field({}, '', source));
  };
}

/** A decoder of a list, or of one page of it. */
export function listOf<Schema extends z.ZodType>(schema: Schema, name: string): Decoder<Received<z.output<Schema>>[]> {
  return resource(z.array(schema), name) as Decoder<Received<z.output<Schema>>[]>;
}

function decodeField<Schema extends z.ZodType>(schema: Schema, field: Field): Received<z.output<Schema>> {
  return decode(schema, field, () => field) as Received<z.output<Schema>>;
}

/** @param need throws if the field is absent */
function decode(schema: z.core.$ZodType, found: Field | null, need: () => Field): unknown {
  if (schema instanceof z.ZodCatch) {
    try {
      return decode(schema.def.innerType, found, need);
    } catch (error) {
      if (!(error instanceof BadReply)) throw error;
      return schema.def.catchValue({} as Parameters<typeof schema.def.catchValue>[0]);
    }
  }
  if (schema instanceof z.ZodOptional) return found ? decode(schema.def.innerType, found, need) : undefined;
  if (schema instanceof z.ZodNullable) return found ? decode(schema.def.innerType, found, need) : null;
  if (schema instanceof z.ZodDefault)
    return found ? decode(schema.def.innerType, found, need) : schema.def.defaultValue;
  return decodePresent(schema, need());
}

function decodePresent(schema: z.core.$ZodType, field: Field): unknown {
  if (schema === identifier) return decodeId(field);
  if (schema === instant) return field.instant();
  if (schema === tokenShown) return decodeToken(field);
  if (schema instanceof z.ZodObject) return decodeObject(schema, field);
  if (schema instanceof z.ZodArray) {
    return field.items(maxPeers).map((item) => decode(schema.def.element, item, () => item));
  }
  if (schema instanceof z.ZodRecord) return field.record();
  if (schema instanceof z.ZodEnum) return field.oneOf(schema.options.map(String));
  if (schema instanceof z.ZodBoolean) return field.boolean();
  if (schema instanceof z.ZodNumber) return field.integer();
  if (schema instanceof z.ZodString || schema instanceof z.ZodCIDRv4) {
    return field.text((schema.meta()?.maxLength as number | undefined) ?? usualLength);
  }
  throw new TypeError(`the client decodes no ${schema._zod.def.type}`);
}

function decodeObject(schema: z.ZodObject, field: Field): Record<string, unknown> {
  const read = Object.entries(schema.shape).map(([name, property]) => {
    const found = field.find([name]);
    return [name, decode(property, found, () => found ?? field.need([name]))] as const;
  });
  return Object.fromEntries(read.filter(([, value]) => value !== undefined));
}
