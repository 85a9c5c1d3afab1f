import { expect, test } from 'vitest'
import { Worker } from '../../src/worker/worker.ts'
import { ROUTES } from '../../src/server/server.ts'

const served = [...new Set(ROUTES.flatMap(({ path }) => /^\/agents\/v1\/([a-z][\w-]*)/.exec(path)?.[1] ?? []))]

test.each([...served, ...served.map((name) => name.toUpperCase()), 'sqlite_x', 'SQLite_sequence', 'tidemark_log'])(
  'a database cannot be named %s: the name means something else already',
  (name) => {
    expect(() => new Worker().database(name)).toThrow(
      expect.objectContaining({
        code: 'NAME_INVALID',
        message: expect.stringContaining('is not a valid name for a database'),
      }),
    )
  },
)

test('the paths of the feed are reserved, and similar names are free', () => {
  expect(served).toEqual(expect.arrayContaining(['changes', 'schema', 'capabilities', 'sync-state', 'auth']))
  for (const name of ['change', 'schemas', 'my_sqlite_x', 'tidemarks'])
    expect(() => new Worker().database(name)).not.toThrow()
})
