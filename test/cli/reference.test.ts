import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createProgram, listCommands } from '../../src/cli/program.ts'
import { Terminal } from '../../src/cli/kit/terminal.ts'
import { ROOT } from './package.ts'
import { renderReference } from './render-reference.ts'

const silent = { write: () => true, on: () => {} }
const terminal = new Terminal({ stdout: silent, stderr: silent, environment: {}, json: false })
const program = await createProgram(
  {
    terminal,
    stdout: new PassThrough(),
    targetFlags: [],
    environment: {},
    folder: ROOT,
    listenForStop: () => new AbortController().signal,
  },
  () => {},
)

test('docs/reference/cli.md and the commands are the same (TIDEMARK_UPDATE=1 writes the page)', () => {
  const page = join(ROOT, 'docs/reference/cli.md')
  const expected = renderReference(program)
  if (process.env['TIDEMARK_UPDATE'] === '1') writeFileSync(page, expected)
  expect(readFileSync(page, 'utf8')).toBe(expected)
})

test('every command, argument and option has a description, in one line of at most 60 characters', () => {
  for (const command of listCommands(program)) {
    expect(command.description(), command.name()).toMatch(/^[A-Z].+\.$/)
    expect(command.summary(), command.name()).toMatch(/^(?:[a-z].{4,59})?$/)
    for (const { name, description } of [
      ...command.options.map((option) => ({ name: option.flags, description: option.description })),
      ...command.registeredArguments.map((argument) => ({ name: argument.name(), description: argument.description })),
    ])
      expect(description.replace(/ \(default: .+\)$/, ''), `${command.name()} ${name}`).toMatch(/^[a-z`].{4,59}$/)
  }
})

test('every verb has a file of its own', () => {
  const files = readdirSync(join(ROOT, 'src/cli/verbs'))
  for (const { name } of program.commands.map((command) => ({ name: command.name() })))
    expect(files).toContain(`${name}.ts`)
})
