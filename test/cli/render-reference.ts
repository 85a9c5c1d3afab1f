import type { Argument, Command, Option } from 'commander'

const INTRO = `# The command line

Generated from the command definitions. Every command also accepts \`--help\`.
With \`--json\` a command prints one JSON document on standard output; \`run\` and \`start\` print one document per event.
An error is then \`{"error":{"code","message","advice"}}\`. Field names are in snake_case, times in RFC 3339.

| exit code | meaning |
|---|---|
| 0 | ok |
| 1 | failed |
| 2 | invalid input |
| 3 | environment problem |
| 130 | interrupted; committed pages are kept, and the next run continues after them |

| option of every command | meaning |
|---|---|
GLOBAL_OPTIONS

| environment | meaning |
|---|---|
| \`TIDEMARK_STORE\` | the store, unless \`--store\` is given |
| \`TIDEMARK_TENANT\` | the tenant, unless \`--tenant\` is given |
| \`TIDEMARK_LOG\` | \`debug\`, \`info\`, \`warn\`, \`error\` or \`silent\`; JSON lines on standard error |
| \`NO_COLOR\` | disables colours |

These are also read from \`.env\` in the folder of the worker. The environment takes precedence.
`

/** The page docs/reference/cli.md. */
export function renderReference(program: Command): string {
  const commands = listCommands(program).flatMap((command) =>
    command.commands.length === 0 ? [command] : listCommands(command),
  )
  return `${INTRO.replace('GLOBAL_OPTIONS', program.options.map(optionRow).join('\n'))}\n${commands.map(renderCommand).join('\n')}`
}

/** Without hidden commands, which are earlier names. */
function listCommands(parent: Command): readonly Command[] {
  const visible = new Set(parent.createHelp().visibleCommands(parent))
  return parent.commands.filter((command) => visible.has(command))
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
  return row(option.flags, `${option.description}${option.mandatory ? ' (required)' : ''}`, option.defaultValue)
}

function row(name: string, description: string, defaultValue: unknown): string {
  const given = defaultValue === undefined ? '' : ` (default: ${String(defaultValue)})`
  return `| \`${name}\` | ${`${description}${given}`.replaceAll('|', '\\|')} |`
}
