import { spawnSync } from 'node:child_process'
import { copyFileSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { JsonSchemaTypeWriter } from '../../src/typings/json-schema-type-writer.ts'
import { ROOT } from '../cli/package.ts'
import { Project } from '../cli/project.ts'

const GOLDEN = join(import.meta.dirname, 'golden.ts')

test('`tidemark types` writes a type for each database, of its schema or of what has landed (TIDEMARK_UPDATE=1 writes the golden)', async () => {
  const project = new Project()
  copyFileSync(join(import.meta.dirname, 'worker.mjs'), join(project.folder, 'worker.ts'))
  symlinkSync(join(ROOT, 'node_modules'), join(project.folder, 'node_modules'))
  const { code, stderr } = await project.run('run', '--json')
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
  expect(await project.json('types', '--out', 'src/databases.ts')).toMatchObject({
    worker: 'shop',
    out: 'src/databases.ts',
    changed: true,
    databases: [
      { name: 'orders', type: 'Orders', from: 'schema' },
      { name: 'people', type: 'People', from: 'schema' },
      { name: 'door-events', type: 'DoorEvents', from: 'columns' },
      { name: 'orders.line', type: 'OrdersLine', from: 'nothing' },
      { name: '123', type: '_123', from: 'nothing' },
    ],
  })
  const file = join(project.folder, 'src/databases.ts')
  const text = readFileSync(file, 'utf8')
  if (process.env['TIDEMARK_UPDATE'] === '1') writeFileSync(GOLDEN, text)
  expect(text).toBe(readFileSync(GOLDEN, 'utf8'))
  const { mtimeMs } = statSync(file)
  expect(await project.json('types', '--out', 'src/databases.ts')).toMatchObject({ changed: false })
  expect(statSync(file).mtimeMs).toBe(mtimeMs)
  expect((await project.run('types')).stdout).toBe(text)
})

test('the generated types compile, and the client accepts only their fields', () => {
  const folder = join(ROOT, 'test/typings')
  const { stdout } = spawnSync(
    process.execPath,
    [
      join(ROOT, 'node_modules/typescript/bin/tsc'),
      '--noEmit',
      '--strict',
      '--exactOptionalPropertyTypes',
      '--noUncheckedIndexedAccess',
      '--skipLibCheck',
      '--target',
      'es2023',
      '--lib',
      'es2024,dom,dom.asynciterable',
      '--module',
      'nodenext',
      '--allowImportingTsExtensions',
      '--ignoreConfig',
      '--types',
      '',
      join(folder, 'usage.ts'),
    ],
    { encoding: 'utf8' },
  )
  expect(stdout).toBe('')
})

test.each([
  [true, 'unknown'],
  [false, 'never'],
  [{}, 'unknown'],
  [{ type: 'object' }, 'Record<string, unknown>'],
  [{ type: ['string', 'null'] }, 'string | null'],
  [{ type: 'array' }, 'Array<unknown>'],
  [{ type: 'array', items: { type: ['string', 'null'] } }, 'Array<string | null>'],
  [{ enum: ['a', 1, null, true] }, '"a" | 1 | null | true'],
  [{ const: { a: 1 } }, 'unknown'],
  [
    {
      allOf: [
        { type: 'object', properties: { a: { type: 'string' } } },
        { anyOf: [{ type: 'string' }, { type: 'null' }] },
      ],
    },
    '{\n  a?: string\n} & (string | null)',
  ],
  [
    { properties: { 'a-b': { type: 'string' }, __proto__x: {} }, required: ['a-b'] },
    '{\n  "a-b": string\n  __proto__x?: unknown\n}',
  ],
  [
    { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'number' } },
    '{\n  a?: string\n  [name: string]: unknown\n}',
  ],
  [{ items: [{ type: 'string' }], additionalItems: { type: 'number' } }, '[string?, ...Array<number>]'],
  [{ $ref: 'https://example.com/elsewhere' }, 'unknown'],
  [{ $ref: '#/nowhere' }, 'unknown'],
  [{ type: 'file' }, 'unknown'],
  [{ oneOf: [{ type: 'string' }, true] }, 'unknown'],
])('the type of %j', (schema, type) => {
  expect(new JsonSchemaTypeWriter(schema, (name) => name).typeOf(schema)).toBe(type)
})
