// Runs commands in sequence in one process, given as JSON; prints their results as JSON.
import { dirname, join } from 'node:path'

const [, , main, commands] = process.argv
const load = (file) => import(join(dirname(main), file))
const [{ createProgram }, { reportError }, { Terminal }] = await Promise.all(
  ['program.js', 'kit/report-error.js', 'kit/terminal.js'].map(load),
)
const answers = []
for (const args of JSON.parse(commands)) {
  const answer = { status: 0, stdout: '', stderr: '' }
  const streamOf = (name) => ({
    on() {},
    write(text, done) {
      answer[name] += text
      done?.()
    },
  })
  const terminal = new Terminal({
    stdout: streamOf('stdout'),
    stderr: streamOf('stderr'),
    environment: process.env,
    json: args.includes('--json'),
  })
  const cli = {
    terminal,
    environment: process.env,
    folder: process.cwd(),
    listenForStop: () => new AbortController().signal,
  }
  try {
    await (
      await createProgram(cli, (code) => (answer.status = code), args[0])
    ).parseAsync(['node', 'tidemark', ...args])
  } catch (error) {
    answer.status = reportError(cli, error, 'tidemark --help')
  }
  answers.push(answer)
}
process.stdout.write(JSON.stringify(answers), () => process.exit(0))
