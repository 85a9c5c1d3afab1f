import { DatabaseSync } from '@photostructure/sqlite'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openOdata } from '../simulators/odata/open-odata.ts'
import { Project } from './project.ts'

/** The database of a user, and a manifest that names it and no streams. */
function projectWithShop(): Project {
  const project = new Project()
  const shop = new DatabaseSync(join(project.folder, 'shop.db'))
  shop.exec('CREATE TABLE customers (id INTEGER PRIMARY KEY, updated_at TEXT NOT NULL); CREATE TABLE notes (text TEXT)')
  shop.exec("INSERT INTO customers VALUES (1, '2026-01-01T00:00:00Z')")
  shop.close()
  project.write('tidemark.yaml', 'connector: sql\nconfig: { url: sqlite:shop.db }\n')
  return project
}

describe('discover', () => {
  test('RX2 lists streams with keys and cursors; without a key it asks for one, and without a cursor it proposes a full refresh', async () => {
    const { code, stdout } = await projectWithShop().run('discover', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      connector: 'sql',
      streams: [
        {
          id: 'customers',
          key: ['id'],
          cursor: 'updated_at',
          candidates: ['id', 'updated_at'],
          needs: null,
          mode: 'incremental',
        },
        { id: 'notes', key: [], cursor: null, candidates: [], needs: 'key', mode: 'full_refresh' },
      ],
    })
  })

  test('shows people the same as a table', async () => {
    const { stdout } = await projectWithShop().run('discover')
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/ {2,}/)),
    ).toEqual([
      ['STREAM', 'KEY', 'CURSOR', 'MODE'],
      ['customers', 'id', 'updated_at', 'incremental'],
      ['notes', 'none: name one', 'none', 'full_refresh'],
    ])
  })

  test('RX2 asks a service for its entity sets, with the credentials that the manifest names', async () => {
    const sets = {
      Orders: {
        key: ['Id'],
        properties: { Id: 'Edm.Int32', CreatedAt: 'Edm.DateTimeOffset', ModifiedAt: 'Edm.DateTimeOffset' },
      },
      Notes: { key: ['Id'], properties: { Id: 'Edm.Guid' } },
    } as const
    await using served = await openOdata({ version: 4, sets, token: 'open sesame' })
    const project = new Project()
    project.write(
      'tidemark.yaml',
      `connector: odata\nconfig: { url: "${served.url}", auth: { kind: bearer, token: "\${ERP_TOKEN}" } }\n`,
    )
    const { code, stdout } = await project.ask('discover', '--json', { env: { ERP_TOKEN: 'open sesame' } })
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      connector: 'odata',
      streams: [
        {
          id: 'Orders',
          key: ['Id'],
          cursor: 'ModifiedAt',
          candidates: ['CreatedAt', 'ModifiedAt'],
          needs: null,
          mode: 'incremental',
        },
        { id: 'Notes', key: ['Id'], cursor: null, candidates: [], needs: null, mode: 'full_refresh' },
      ],
    })
    expect(await project.ask('discover', { env: { ERP_TOKEN: 'wrong' } })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('AUTH_REJECTED') as string,
    })
  })

  test('RX7 compares with the stored columns, and status shows the drift of the last run', async () => {
    const project = projectWithShop()
    project.write(
      'tidemark.yaml',
      'name: shop\nconnector: sql\nconfig: { url: sqlite:shop.db }\nstreams:\n  - { id: shop.customers, options: { table: customers } }\n  - { id: shop.gone }\n',
    )
    expect((await project.ask('run', 'shop.customers')).code).toBe(0)
    const shop = new DatabaseSync(join(project.folder, 'shop.db'))
    shop.exec(
      "ALTER TABLE customers ADD COLUMN email TEXT; UPDATE customers SET email = 'a@b'; ALTER TABLE customers DROP COLUMN updated_at",
    )
    shop.close()
    expect(JSON.parse((await project.ask('discover', '--json')).stdout)).toMatchObject({
      drift: [
        { stream: 'shop.customers', is_gone: false, new: ['email'], gone: ['updated_at'] },
        { stream: 'shop.gone', is_gone: true },
      ],
    })
    expect((await project.ask('discover')).stdout).toContain(
      '• shop.customers: new email; gone updated_at\n• shop.gone: the source no longer lists it',
    )
    const words = ['new shop.customers.email (string)', 'gone shop.customers.updated_at']
    const { stdout } = await project.ask('run', 'shop.customers', '--json')
    expect((JSON.parse(stdout.trimEnd().split('\n').at(-1)!) as { syncs: object[] }).syncs).toMatchObject([
      { drift: words },
    ])
    expect((JSON.parse((await project.ask('status', '--json')).stdout) as { syncs: object[] }).syncs[0]).toMatchObject({
      sync: 'shop.customers',
      drift: words.join('; '),
    })
    expect((await project.ask('status')).stdout).toContain(
      `shop.customers: records changed shape: ${words.join('; ')}.`,
    )
  })

  test('reports a missing manifest, and a source that cannot list streams', async () => {
    const project = new Project()
    expect(await project.ask('discover')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('does not exist') as string,
    })
    project.write('tidemark.yaml', 'connector: rest\nconfig: { base_url: https://api.example.com }\n')
    expect(await project.ask('discover')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('The connector rest cannot list streams') as string,
    })
  })
})
