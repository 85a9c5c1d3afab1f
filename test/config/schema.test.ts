import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { compileSchema } from '../../src/worker/schema.ts'

describe('a Standard Schema', () => {
  const { kind, validate } = compileSchema(
    'contacts',
    z.object({ id: z.string(), age: z.number().optional(), tags: z.array(z.string()) }),
  )

  test('accepts valid records and reports the path of each error', async () => {
    expect(kind).toBe('standard')
    expect(await validate({ id: 'a', tags: [] })).toBeNull()
    expect(await validate({ id: 1, tags: ['x', 2] })).toMatch(/^id: .*; tags\.1: /)
  })

  test('takes an integer beyond 2^53 for a number', async () => {
    expect(await validate({ id: 'a', age: 2n ** 60n, tags: [] })).toBeNull()
  })

  test('may validate asynchronously', async () => {
    const slow = compileSchema('contacts', z.object({ id: z.string().refine(async (id) => id !== 'bad', 'is bad') }))
    expect(await slow.validate({ id: 'good' })).toBeNull()
    expect(await slow.validate({ id: 'bad' })).toBe('id: is bad')
  })

  test('that throws rejects the record and does not stop the cycle', async () => {
    const broken = compileSchema(
      'contacts',
      z.object({
        id: z.string().refine(() => {
          throw new Error('oops')
        }),
      }),
    )
    expect(await broken.validate({ id: 'a' })).toBe('the schema itself failed: oops')
  })

  test('may be a function, as those of arktype are', async () => {
    const standard = {
      version: 1,
      vendor: 'test',
      validate: (value: unknown) =>
        'id' in (value as object) ? {} : { issues: [{ message: 'no id', path: [{ key: 'id' }] }] },
    }
    const schema = Object.assign(() => {}, { '~standard': standard as never })
    expect(await compileSchema('contacts', schema).validate({})).toBe('id: no id')
  })

  test('with many errors stays readable', async () => {
    const shape = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`field${index}`, z.string()]))
    const said = await compileSchema('contacts', z.object(shape)).validate({})
    expect(said).toMatch(/and 47 more$/)
  })
})

describe('a JSON Schema', () => {
  const schema = {
    type: 'object',
    properties: { id: { type: 'integer' }, name: { type: 'string', format: 'email' } },
    required: ['id'],
    additionalProperties: false,
  }

  test('accepts valid records and reports the path of each error', async () => {
    const { kind, validate } = compileSchema('contacts', schema)
    expect(kind).toBe('json')
    expect(await validate({ id: 1, name: 'x' })).toBeNull()
    expect(await validate({ id: 'x' })).toBe('id: must be integer')
    expect(await validate({})).toBe("must have required property 'id'")
    expect(await validate({ id: 1, nmae: 'x' })).toBe('must NOT have additional properties ("nmae")')
  })

  test('takes a bigint for an integer and an undefined member for an absent one', async () => {
    const { validate } = compileSchema('contacts', schema)
    expect(await validate({ id: 9_007_199_254_740_993n })).toBeNull()
    expect(await validate({ id: 1, gone: undefined })).toBeNull()
    expect(await validate({ id: 1, name: 5n })).toBe('name: must be string')
  })

  test('may be of a newer dialect', async () => {
    const json = z.toJSONSchema(z.object({ id: z.string(), pair: z.tuple([z.string(), z.number()]) })) as Record<
      string,
      unknown
    >
    expect(json['$schema']).toContain('2020-12')
    const { validate } = compileSchema('contacts', json)
    expect(await validate({ id: 'a', pair: ['x', 1] })).toBeNull()
    expect(await validate({ id: 'a', pair: [1, 'x'] })).toMatch(/^pair\.0: /)
  })
})

test.each([
  5,
  'string',
  null,
  true,
  [],
  () => {},
  {},
  { id: 'string' },
  { type: 'array' },
  { type: 'objekt' },
  { $ref: '#/definitions/nope' },
  { type: 'object', properties: 5 },
  { type: 'object', $async: true },
  { '~standard': {} },
])('%j is no schema, and is refused when it is declared', (schema) => {
  expect(() => compileSchema('contacts', schema)).toThrow(
    expect.objectContaining({ code: 'SCHEMA_INVALID', message: expect.stringContaining('"contacts"') }),
  )
})
