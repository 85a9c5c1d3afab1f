import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { expectGolden } from './golden.ts'
import { Project } from './project.ts'

test('Z43 keys: create, list, rotate and revoke; the secret is shown once and kept nowhere', async () => {
  const project = Project.withWorker()
  const created = await project.run('keys', 'create', 'reports', '--scopes', 'changes:read,people:read', '--rate', '60', '--json')
  const { key: { id, text } } = JSON.parse(created.stdout) as { key: { id: string; text: string } }
  expect(text).toMatch(/^tmk_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/)
  expectGolden('keys-create', project, masked(created))
  const rotated = await project.run('keys', 'rotate', id, '--json')
  expectGolden('keys-rotate', project, masked(rotated))
  expectGolden('keys-revoke-needs-yes', project, masked(await project.run('keys', 'revoke', id, '--json')))
  expectGolden('keys-revoke', project, masked(await project.run('keys', 'revoke', id, '--yes', '--json')))
  const listed = await project.run('keys', 'list', '--json')
  expectGolden('keys-list', project, masked(listed))
  expect(listed.stdout).not.toContain(text.slice(21))
  expectGolden('keys-unknown', project, masked(await project.run('keys', 'revoke', id, '--tenant', 'acme', '--yes', '--json')))
  expect((await project.run('keys', 'create', 'x', '--scopes', 'all')).code).toBe(2)
  expect((await project.run('keys', 'list')).stdout).toMatch(/^ID +NAME +SCOPES +RATE +CREATED +STATUS\n[0-9a-f]{16} +reports +changes:read,people:read +60\/min .* ended\n/)
})

function masked<Answer extends { stdout: string }>(answer: Answer): Answer {
  return { ...answer, stdout: answer.stdout.replaceAll(/tmk_[0-9a-f]{16}_[A-Za-z0-9_-]{43}/g, '<key>').replaceAll(/\b[0-9a-f]{16}\b/g, '<id>') }
}

describe('R43 Z4 the keys that states are sealed with', () => {
  test('are rotated while nothing stops: a new one in front of the file, the data keys wrapped by it, the old one idle, all of it audited', async () => {
    const project = Project.withWorker()
    await project.run('run', 'room-changes')
    const before = await project.json('keys', 'rotate')
    expect(before).toMatchObject({ rewrapped: 0, idle: [] })
    const after = await project.json('keys', 'rotate', '--new')
    expect(after).toMatchObject({ rewrapped: 1, idle: [before['current']] })
    const file = join(project.folder, '.tidemark/tidemark.db.key')
    // Without the old one all is readable.
    writeFileSync(file, `${readFileSync(file, 'utf8').split('\n')[0]}\n`, { mode: 0o600 })
    expect(await project.json('state', 'get', 'room-changes', '--reveal')).toMatchObject({ version: 1, committed: { value: { seen: 1 } } })
    expect(await project.json('run', 'room-changes')).toMatchObject({ ok: true })
    expect(await project.json('state', 'verify')).toMatchObject({ intact: true })
    // Z5: with another, nothing is, and nothing runs.
    writeFileSync(file, `${(await project.json('keys', 'new'))['text']}\n`, { mode: 0o600 })
    expect(await project.run('run', 'room-changes')).toMatchObject({ code: 3, stdout: expect.stringContaining('STATE_UNREADABLE') })
  })

  test('from the environment are put there by hand: --new says so, and changes nothing', async () => {
    const project = Project.withWorker()
    const { text } = await project.json('keys', 'new')
    const env = { TIDEMARK_KEY: text as string }
    expect(await project.run('run', 'room-changes', { env })).toMatchObject({ code: 0 })
    expect(await project.run('keys', 'rotate', '--new', { env })).toMatchObject({ code: 2, stderr: expect.stringContaining('in front of it') })
    const { text: next } = await project.json('keys', 'new')
    expect(await project.run('keys', 'rotate', { env: { TIDEMARK_KEY: `${next},${text}` } })).toMatchObject({ code: 0, stdout: expect.stringContaining('(1 anew)') })
    expect(await project.run('run', 'room-changes', { env: { TIDEMARK_KEY: next as string } })).toMatchObject({ code: 0 })
    expect(project.has('.tidemark/tidemark.db.key')).toBe(false)
  })
})
