import { maskUrl } from '../../redaction/mask-url.ts'
import type { TargetFlags } from './target.ts'

/** Quotes the given flags for a shell. Passwords are masked. */
export function formatTargetFlags({ file, store, tenant }: TargetFlags): string[] {
  const flags = { file, store: store === undefined ? undefined : maskUrl(store), tenant }
  return Object.entries(flags).flatMap(([name, value]) =>
    typeof value === 'string' ? [`--${name} ${quoteShellArgument(value)}`] : [],
  )
}

/** Adds the target flags to the commands in a hint, so that they select the same worker, store and tenant. */
export function addTargetFlags(hint: string, flags: readonly string[]): string {
  if (flags.length === 0) return hint
  const add = (command: string): string => (takesTargetFlags(command) ? `${command} ${flags.join(' ')}` : command)
  return hint.startsWith('npx tidemark ')
    ? add(hint)
    : hint.replaceAll(/`((?:npx )?tidemark [^`]+)`/g, (_, command: string) => `\`${add(command)}\``)
}

/** Verbs without the flags --file, --store and --tenant. */
const VERBS_WITHOUT_TARGET = /^(?:npx )?tidemark (?:init|demo|advise|sim|restate|keys new|<verb>)\b|--help/

function takesTargetFlags(command: string): boolean {
  return !VERBS_WITHOUT_TARGET.test(command) && !/ --(?:file|store|tenant)\b/.test(command)
}

function quoteShellArgument(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
