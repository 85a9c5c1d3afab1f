import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Project } from '../cli/project.ts'
import { blocksOf, commandsIn } from './blocks.ts'

test('docs/tutorials/first-copy.md: every command runs, in the order of the page', { timeout: 240_000 }, async () => {
  const project = new Project()
  const ran: string[] = []
  let key = ''
  // The last command runs until it is stopped, as that of the README does.
  for (const args of blocksOf('docs/tutorials/first-copy.md')
    .flatMap(commandsIn)
    .filter(([verb]) => verb !== 'start')) {
    const folder = args[0] === 'init' ? project.folder : join(project.folder, 'billing')
    const { code, stdout, stderr } = await project.run(
      ...args.map((word) => (word === 'cus_1' && key !== '' ? key : word)),
      { folder },
    )
    expect({ args, code, said: code === 0 ? '' : stdout + stderr }).toEqual({ args, code: 0, said: '' })
    key = /^(cus_\w+)/m.exec(stdout)?.[1] ?? key
    ran.push(`${args[0]}\n${stdout}`)
  }
  expect(ran.map((text) => text.split('\n')[0])).toEqual([
    'init',
    'run',
    'query',
    'run',
    'status',
    'preview',
    'query',
    'why',
    'why-not',
  ])
  expect(ran[1]).toMatch(/✓ customers-backfill .* created/)
  expect(ran[7]).toMatch(/created .*customers-backfill/)
  expect(ran[8]).toMatch(/^present {2}The row is in customers\./m)
})
