import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Store } from '../../src/contract/index.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { expectGolden } from './golden.ts'
import { Project, type Running } from './project.ts'

test('Z43 keys: create, list, rotate and revoke; the secret is shown once and not stored', async () => {
  const project = Project.withWorker()
  const created = await project.ask(
    'keys',
    'create',
    'reports',
    '--scopes',
    'changes:read,people:read',
    '--rate',
    '60',
    '--json',
  )
  const {
    key: { id, text },
  } = JSON.parse(created.stdout) as { key: { id: string; text: string } }
  expect(text).toMatch(/^tmk_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/)
  expectGolden('keys-create', project, masked(created))
  const rotated = await project.ask('keys', 'rotate', id, '--json')
  expectGolden('keys-rotate', project, masked(rotated))
  const {
    key: { text: next },
  } = JSON.parse(rotated.stdout) as { key: { text: string } }
  expectGolden('keys-revoke-needs-yes', project, masked(await project.ask('keys', 'revoke', id, '--json')))
  const revoked = await project.ask('keys', 'revoke', id, '--yes', '--json')
  expectGolden('keys-revoke', project, masked(revoked))
  const listed = await project.ask('keys', 'list', '--json')
  expectGolden('keys-list', project, masked(listed))
  expectGolden(
    'keys-unknown',
    project,
    masked(await project.ask('keys', 'revoke', id, '--tenant', 'acme', '--yes', '--json')),
  )
  expect((await project.ask('keys', 'create', 'x', '--scopes', 'all')).code).toBe(2)
  // Each was shown by the command that made it, and by nothing else.
  const later = [revoked, listed, await project.ask('keys', 'list'), await project.ask('keys', 'revoke', id, '--yes')]
  const kept = readdirSync(project.folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(project.folder, name))
    .filter((path) => statSync(path).isFile())
  expect(kept.some((path) => path.endsWith('tidemark.db'))).toBe(true)
  for (const secret of [text, next].map((key) => key.slice(21))) {
    for (const answer of later) expect(answer.stdout + answer.stderr).not.toContain(secret)
    expect(kept.filter((path) => readFileSync(path).includes(secret))).toEqual([])
  }
  expect(rotated.stdout).not.toContain(text.slice(21))
  expect((await project.ask('keys', 'list')).stdout).toMatch(
    /^ID +NAME +SCOPES +RATE +CREATED +STATUS\n[0-9a-f]{16} +reports +changes:read,people:read +60\/min .* expired\n/,
  )
})

function masked<Answer extends { stdout: string }>(answer: Answer): Answer {
  return {
    ...answer,
    stdout: answer.stdout
      .replaceAll(/tmk_[0-9a-f]{16}_[A-Za-z0-9_-]{43}/g, '<key>')
      .replaceAll(/\b[0-9a-f]{16}\b/g, '<id>'),
  }
}

describe('R43 Z4 the encryption keys', () => {
  test('are rotated without downtime: a new first key, rewrapped data keys, an idle old key, all audited', async () => {
    const project = Project.withWorker()
    await project.ask('run', 'room-changes')
    const before = await project.json('keys', 'rotate')
    expect(before).toMatchObject({ rewrapped: 0, idle: [] })
    const after = await project.json('keys', 'rotate', '--new')
    expect(after).toMatchObject({ rewrapped: 1, idle: [before['current']] })
    const file = join(project.folder, '.tidemark/tidemark.db.key')
    // Without the old one all is readable.
    writeFileSync(file, `${readFileSync(file, 'utf8').split('\n')[0]}\n`, { mode: 0o600 })
    expect(await project.json('state', 'get', 'room-changes', '--reveal')).toMatchObject({
      version: 1,
      committed: { value: { seen: 1 } },
    })
    expect(await project.json('run', 'room-changes')).toMatchObject({ ok: true })
    expect(await project.json('state', 'verify')).toMatchObject({ intact: true })
    // Z5: with another, nothing is, and nothing runs.
    writeFileSync(file, `${(await project.json('keys', 'new'))['text']}\n`, { mode: 0o600 })
    expect(await project.ask('run', 'room-changes')).toMatchObject({
      code: 3,
      stdout: expect.stringContaining('STATE_UNREADABLE'),
    })
  })

  test('Z4 for every tenant during a run; a key that a tenant still needs is not retired, and the tenant is named', async () => {
    const project = Project.withWorker({ slowMs: 400 })
    for (const tenant of ['acme', 'zeta'])
      expect(await project.ask('run', 'room-changes', '--tenant', tenant)).toMatchObject({ code: 0 })
    const running = project.start('run', 'people-list', '--tenant', 'zeta')
    await running.says('people-list')
    const old = (await project.json('keys', 'rotate', '--new', '--tenant', 'acme'))['waiting']
    const [key] = Object.keys(old as object)
    expect(old).toEqual({ [key!]: ['zeta'] })
    const refused = await project.ask('keys', 'retire', key!, '--yes')
    expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining('the state of zeta') })
    const all = await project.json('keys', 'rotate', '--all-tenants')
    expect(all).toMatchObject({ rewrapped: 1, waiting: {}, idle: [key], tenants: { acme: 0, zeta: 1 } })
    // The run that began with the old ring alone has its data key in memory, and ends well.
    expect(await running.ended).toMatchObject({ code: 0 })
    expect(await project.ask('keys', 'retire', key!)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('CONFIRMATION_NEEDED'),
    })
    expect(await project.ask('keys', 'retire', all['current'] as string, '--yes')).toMatchObject({ code: 2 })
    expect(await project.json('keys', 'retire', key!, '--yes')).toMatchObject({ retired: key })
    expect(await project.ask('keys', 'retire', key!, '--yes')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('KEY_UNKNOWN'),
    })
    for (const tenant of ['acme', 'zeta']) {
      expect(await project.ask('run', 'room-changes', '--tenant', tenant)).toMatchObject({ code: 0 })
      expect(await project.json('state', 'verify', '--tenant', tenant)).toMatchObject({ intact: true })
    }
    expect(await project.json('state', 'get', 'people-list', '--tenant', 'zeta')).toMatchObject({ version: 1 })
  })

  test('Z4 rotations killed twenty times, in the middle and at any moment, leave every tenant readable, and the next one ends them', async () => {
    const project = Project.withWorker()
    await project.ask('run', 'room-changes')
    const url = `sqlite:${join(project.folder, '.tidemark/tidemark.db')}`
    const tenants = Array.from({ length: 100 }, (_, n) => `t${n}`)
    const store = await openStore(url, { environment: {} })
    for (const tenant of tenants)
      await store
        .forTenant(tenant)
        .cursorSecrets({ secret: tenant, createdAt: 1, rotateAfterMs: 1_000, retainMs: 1_000 })
    await store.close()
    /** How many of the tenants each key wraps. */
    const wrapping = async (reader: Store): Promise<Map<string, number>> => {
      const counts = new Map<string, number>()
      for (const tenant of tenants) {
        const { wrappedBy } = (await reader.forTenant(tenant).dataKeys())[0]!
        counts.set(wrappedBy, (counts.get(wrappedBy) ?? 0) + 1)
      }
      return counts
    }
    const inTheMiddle = async (rotating: Running): Promise<void> => {
      const reader = await openStore(url, { environment: {} })
      while (rotating.process.exitCode === null && (await wrapping(reader)).size < 2)
        await new Promise((resolve) => setImmediate(resolve))
      await reader.close()
    }
    let inside = 0
    for (let life = 0; life < 20; life++) {
      const rotating = project.start('keys', 'rotate', '--all-tenants', '--new')
      // Every other one at any moment: while it starts, while it makes a key, or when it is through.
      if (life % 2 === 0) await inTheMiddle(rotating)
      else await new Promise((resolve) => setTimeout(resolve, Math.random() * 1_000))
      rotating.process.kill('SIGKILL')
      await rotating.ended
      const after = await openStore(url, { environment: {} })
      if ((await wrapping(after)).size > 1) inside++
      for (const tenant of tenants)
        expect(
          await after
            .forTenant(tenant)
            .cursorSecrets({ secret: '', createdAt: 2, rotateAfterMs: 1_000, retainMs: 1_000 }),
        ).toMatchObject([{ secret: tenant }])
      await after.close()
    }
    expect(inside).toBeGreaterThan(0)
    expect(await project.json('keys', 'rotate', '--all-tenants')).toMatchObject({ waiting: {} })
    expect(await project.json('state', 'verify')).toMatchObject({ intact: true })
  })

  test('from the environment are changed manually: --new says so, and changes nothing', async () => {
    const project = Project.withWorker()
    const { text } = await project.json('keys', 'new')
    const env = { TIDEMARK_KEY: text as string }
    expect(await project.ask('run', 'room-changes', { env })).toMatchObject({ code: 0 })
    expect(await project.ask('keys', 'rotate', '--new', { env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Put a new key (`tidemark keys new`) first in TIDEMARK_KEY'),
    })
    const { text: next } = await project.json('keys', 'new')
    expect(await project.ask('keys', 'rotate', { env: { TIDEMARK_KEY: `${next},${text}` } })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('(1 rewrapped)'),
    })
    expect(await project.ask('run', 'room-changes', { env: { TIDEMARK_KEY: next as string } })).toMatchObject({
      code: 0,
    })
    expect(project.has('.tidemark/tidemark.db.key')).toBe(false)
  })
})
