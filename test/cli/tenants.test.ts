import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openStore } from '../../src/stores/open-store.ts'
import { expectGolden } from './golden.ts'
import { Project } from './project.ts'

test('Z14 tenants: listed with their usage; erased only with --yes, and then no file contains their data', async () => {
  const project = Project.withWorker({ people: [{ id: 'osprey', name: 'Osprey of Acme' }] })
  expectGolden('tenants-none', project, await project.ask('tenants', 'list', '--json'))
  expect(readdirSync(project.folder)).not.toContain('.tidemark')
  await project.ask('run', '--tenant', 'acme')
  await project.ask('webhooks', 'add', 'https://example.com/osprey', '--tenant', 'acme')
  project.source({})
  await project.ask('run', '--tenant', 'zeta')
  expectGolden('tenants-list', project, masked(await project.ask('tenants', 'list', '--json')))
  expect((await project.ask('tenants', 'list')).stdout).toMatch(/^TENANT +SYNCS .*\nacme +2 .*\nzeta +2 /)
  const holding = (): string[] =>
    readdirSync(join(project.folder, '.tidemark')).filter((file) =>
      readFileSync(join(project.folder, '.tidemark', file)).includes('sprey'),
    )
  expect(holding()).toEqual(['tidemark.db'])

  expectGolden('tenants-delete-needs-yes', project, masked(await project.ask('tenants', 'delete', 'acme', '--json')))
  expect((await project.ask('tenants', 'delete', 'acme')).stderr).toContain('Plan for tenant acme')
  expect(await project.json('query', 'select id from acme__people')).toMatchObject({ rows: [{ id: 'osprey' }] })
  expectGolden('tenants-delete', project, masked(await project.ask('tenants', 'delete', 'acme', '--yes', '--json')))
  expect(holding()).toEqual([])
  expectGolden('tenants-erased', project, masked(await project.ask('tenants', 'list', '--json')))
  expect(await project.json('state', 'verify', '--tenant', 'acme')).toMatchObject({ intact: true, entries: 1 })
  expect(await project.json('run', '--tenant', 'acme')).toMatchObject({ ok: true })
  expect(await project.json('state', 'get', 'room-changes', '--tenant', 'acme', '--reveal')).toMatchObject({
    version: 1,
  })
  expectGolden('tenants-unknown', project, await project.ask('tenants', 'delete', 'nobody', '--yes', '--json'))
})

test('Z14 a tenant with a running sync is not erased; the lease of a killed run does not prevent it', async () => {
  const project = Project.withWorker({ slowMs: 60_000 })
  const running = project.start('run', 'people-list')
  await running.says('people-list')
  const url = `sqlite:${join(project.folder, '.tidemark/tidemark.db')}`
  await held(url)
  expect(await project.ask('tenants', 'delete', 'default', '--yes')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('LEASE_HELD'),
  })
  running.process.kill('SIGKILL')
  await running.ended
  expect(await project.ask('tenants', 'delete', 'default', '--yes')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Erased tenant default'),
  })
})

async function held(url: string): Promise<void> {
  const store = await openStore(url, { environment: {} })
  while ((await store.readCheckpoint({ worker: 'office', sync: 'people-list' })).heldBy === null)
    await new Promise((resolve) => setTimeout(resolve, 20))
  await store.close()
}

function masked<Answer extends { stdout: string }>(answer: Answer): Answer {
  return {
    ...answer,
    stdout: answer.stdout.replaceAll(/\bk[0-9a-f]{8}\b/g, '<key>').replaceAll(/"entries":\d+/g, '"entries":"<count>"'),
  }
}
