import { expect, expectTypeOf, test } from 'vitest'
import {
  objectSchema,
  requireOneOf,
  SECRET_SCHEMA,
  TEXT_SCHEMA,
  whenEquals,
  type SchemaValue,
} from '../../../src/values/config-schema.ts'
import { defineSource, type SourceStream } from '../../../src/sources/kit/define-source.ts'

const SHARED = {
  name: 'harbour',
  title: 'Harbour',
  streams: { options: objectSchema({ pier: TEXT_SCHEMA }) },
  template: { rank: 1, settings: {}, database: 'vessels' },
  times: { since: 'vessels have no times', range: 'vessels have no times' },
} as const
const STREAM: SourceStream = { mode: 'replace', execute: async () => ({ changes: [], hasMore: false }) }

test('the config of a source has the type of its schema, without a declared type', () => {
  const source = defineSource({
    ...SHARED,
    config: objectSchema(
      {
        token: SECRET_SCHEMA,
        piers: { type: 'array', items: { type: 'integer' } },
        order: { enum: ['asc', 'desc'] },
        nested: objectSchema({ on: { type: 'boolean' } }, ['on']),
        either: { anyOf: [TEXT_SCHEMA, { type: 'array', items: TEXT_SCHEMA }] },
        headers: { type: 'object', additionalProperties: { type: 'string' } },
      },
      ['token'],
    ),
    async open(config) {
      expectTypeOf(config.token).toEqualTypeOf<string>()
      expectTypeOf(config.piers).toEqualTypeOf<readonly number[] | undefined>()
      expectTypeOf(config.order).toEqualTypeOf<'asc' | 'desc' | undefined>()
      expectTypeOf(config.nested!.on).toEqualTypeOf<boolean>()
      expectTypeOf(config.either).toEqualTypeOf<string | readonly string[] | undefined>()
      expectTypeOf(config.headers).toEqualTypeOf<Readonly<Record<string, string>> | undefined>()
      // @ts-expect-error: an unknown field does not compile.
      return { token: config.token, port: config.port as unknown }
    },
    stream(opened, { options }) {
      expectTypeOf(opened.token).toEqualTypeOf<string>()
      expectTypeOf(options?.pier).toEqualTypeOf<string | undefined>()
      return STREAM
    },
  })
  expectTypeOf(source.name).toEqualTypeOf<'harbour'>()
  expectTypeOf(source.advice).toEqualTypeOf<undefined>()
  expect(source.name).toBe('harbour')
})

test('a config that accepts unknown fields does not compile', () => {
  const open = async (): Promise<null> => null
  defineSource({
    ...SHARED,
    // @ts-expect-error: additionalProperties is missing.
    config: { type: 'object', properties: { token: SECRET_SCHEMA } },
    open,
    stream: () => STREAM,
  })
})

test('conditions make a union', () => {
  const kinds = {
    ...objectSchema({ kind: { enum: ['a', 'b'] }, url: TEXT_SCHEMA, key: SECRET_SCHEMA }, ['kind']),
    allOf: [whenEquals('kind', 'a', { required: ['url'] }), whenEquals('kind', 'b', { required: ['key'] })],
  } as const
  const describeKind = (value: SchemaValue<typeof kinds>): string => (value.kind === 'a' ? value.url : value.key)
  expect(describeKind({ kind: 'b', key: 'K' })).toBe('K')
})

test('one of several alternatives is required', () => {
  const either = requireOneOf(objectSchema({ folder: TEXT_SCHEMA, bucket: TEXT_SCHEMA }), ['folder'], ['bucket'])
  expect(either).toEqual({
    type: 'object',
    properties: { folder: TEXT_SCHEMA, bucket: TEXT_SCHEMA },
    additionalProperties: false,
    oneOf: [{ required: ['folder'] }, { required: ['bucket'] }],
  })
})
