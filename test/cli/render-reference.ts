import type { Argument, Command, Option } from 'commander'

const INTRO = `# The command line

Written from the command's own definitions. Every command also takes \`--help\`.
With \`--json\` a command answers in one JSON document on standard output; \`run\` and \`start\` answer in one per line, as things happen.
An error is then \`{"error":{"code","message","advice"}}\`. Members are in snake_case, times in RFC 3339.

| exit code | meaning |
|---|---|
| 0 | ok |
| 1 | failed |
| 2 | your input |
| 3 | your environment |
| 130 | interrupted; what has landed stays, and the next run continues there |

| environment | meaning |
|---|---|
| \`TIDEMARK_STORE\` | where the rows live, unless \`--store\` says otherwise |
| \`TIDEMARK_TENANT\` | whose data it is, unless \`--tenant\` says otherwise |
| \`TIDEMARK_LOG\` | \`debug\`, \`info\`, \`warn\`, \`error\` or \`silent\`; JSON lines on standard error |
| \`NO_COLOR\` | no colours, also on a terminal |

These are also read from \`.env\` beside the worker. What the environment itself says wins.
`

/** The page docs/reference/cli.md. */
export function renderReference(program: Command): string {
  const commands = program.commands.flatMap((command) => (command.commands.length === 0 ? [command] : command.commands))
  return `${INTRO}\n${commands.map(renderCommand).join('\n')}`
}

function renderCommand(command: Command): string {
  const rows = [...command.registeredArguments.map(argumentRow), ...command.options.map(optionRow)]
  return `## tidemark ${nameOf(command)}

\`\`\`
tidemark ${nameOf(command)} ${command.usage()}
\`\`\`

${command.description()}

| | |
|---|---|
${rows.join('\n')}
`
}

function nameOf(command: Command): string {
  const parent = command.parent
  return parent === null || parent.name() === 'tidemark' ? command.name() : `${parent.name()} ${command.name()}`
}

function argumentRow(argument: Argument): string {
  const name = argument.required ? `<${argument.name()}>` : `[${argument.name()}${argument.variadic ? '…' : ''}]`
  return row(name, argument.description, argument.defaultValue)
}

function optionRow(option: Option): string {
  return row(option.flags, `${option.description}${option.mandatory ? ' (needed)' : ''}`, option.defaultValue)
}

function row(name: string, description: string, defaultValue: unknown): string {
  const given = defaultValue === undefined ? '' : ` (default: ${String(defaultValue)})`
  return `| \`${name}\` | ${`${description}${given}`.replaceAll('|', '\\|')} |`
}
