import { expect, test } from 'vitest'
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
