import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createProgram, isVerb } from '../../src/cli/program.ts'
import { Terminal } from '../../src/cli/kit/terminal.ts'
import { VERBS } from '../../src/cli/verbs.ts'

const silent = { write: () => true, on: () => {} }
const cli = {
  terminal: new Terminal({ stdout: silent, stderr: silent, environment: {}, json: false }),
  stdout: new PassThrough(),
  targetFlags: [],
  environment: {},
  folder: '.',
  listenForStop: () => new AbortController().signal,
}
const namesOf = async (verb?: string): Promise<string[]> =>
  (await createProgram(cli, () => {}, verb)).commands.map((command) => command.name())

test('a known verb is loaded alone', async () => {
  expect(await namesOf('status')).toEqual(['status'])
  expect(await namesOf('state')).toEqual(['state'])
})

test.each([undefined, 'help', '--help', 'sttus', 'constructor'])(
  'with %s every verb is loaded, in order',
  async (verb) => {
    expect(isVerb(verb)).toBe(false)
    expect(await namesOf(verb)).toEqual(Object.keys(VERBS))
  },
)
