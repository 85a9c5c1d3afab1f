import { Argument, Command } from 'commander'
import type { VerbAction } from '../cli.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

export function completionVerb(): Command {
  return new Command('completion')
    .summary('print a completion script for a shell')
    .description(
      'Prints a script that completes commands and options. bash: source <(tidemark completion bash). zsh: the same with zsh. fish: tidemark completion fish | source.',
    )
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
}

/** `loadCommands` returns the commands to complete. */
export const completion =
  (loadCommands: () => Promise<readonly Command[]>): VerbAction<[Shell]> =>
  async ({ terminal }, shell) => {
    const words = listWords(await loadCommands())
    terminal.print((shell === 'fish' ? writeFishScript(words) : writeBashScript(words, shell)).trimEnd())
  }

/** The words that may follow a command, by its path: '' for tidemark itself, `state get` for a subcommand. */
type Words = ReadonlyMap<string, readonly CompletionWord[]>

interface CompletionWord {
  readonly word: string
  readonly summary: string
}

function listWords(commands: readonly Command[], path = ''): Words {
  const words = new Map<string, CompletionWord[]>()
  words.set(
    path,
    commands.map((command) => ({ word: command.name(), summary: command.summary() })),
  )
  for (const command of commands) {
    const name = `${path} ${command.name()}`.trim()
    for (const [below, found] of listWords(command.commands, name)) words.set(below, [...found])
    const options = command.options.map(({ long, short, description }) => ({
      word: long ?? short ?? '',
      summary: description,
    }))
    words.set(name, [...(words.get(name) ?? []), ...options])
  }
  return words
}

function writeBashScript(words: Words, shell: 'bash' | 'zsh'): string {
  const cases = [...words].map(
    ([path, found]) => `    ${quote(path)}) words=${quote(found.map(({ word }) => word).join(' '))} ;;`,
  )
  return `${shell === 'zsh' ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_tidemark() {
  local word path='' words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) case ${quote(` ${[...words.keys()].join(' | ')} `)} in *" \${path:+$path }$word "*) path="\${path:+$path }$word" ;; esac ;; esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
  [ \${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _tidemark tidemark
`
}

function writeFishScript(words: Words): string {
  const lines = [...words].flatMap(([path, found]) => {
    const names = path.split(' ')
    const condition =
      path === '' ? '__fish_use_subcommand' : names.map((name) => `__fish_seen_subcommand_from ${name}`).join('; and ')
    return found.map(({ word, summary }) => {
      const flag = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${word}`
      return `complete -c tidemark -n ${quote(condition)} ${flag} -d ${quote(summary)}`
    })
  })
  return `${lines.join('\n')}\n`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
