import { maskUrl } from '../../redaction/mask-url.ts'
import type { TargetFlags } from './target.ts'

/** The given flags as words of a shell. A password is masked; the user has it in the command that was given. */
export function formatTargetFlags({ file, store, tenant }: TargetFlags): string[] {
  const given = { file, store: store === undefined ? undefined : maskUrl(store), tenant }
  return Object.entries(given).flatMap(([name, value]) => (typeof value === 'string' ? [`--${name} ${quoteShellArgument(value)}`] : []))
}

/** A hint whose commands lead to the same worker, store and tenant as the command that prints it. */
export function addTargetFlags(hint: string, words: readonly string[]): string {
  if (words.length === 0) return hint
  const add = (command: string): string => (takesTargetFlags(command) ? `${command} ${words.join(' ')}` : command)
  return hint.startsWith('npx tidemark ') ? add(hint) : hint.replaceAll(/`((?:npx )?tidemark [^`]+)`/g, (_, command: string) => `\`${add(command)}\``)
}

/** Verbs that have no worker, store or tenant yet. */
const VERBS_WITHOUT_TARGET = /^(?:npx )?tidemark (?:init|demo|advise|sim|restate|keys new|<verb>)\b|--help/

function takesTargetFlags(command: string): boolean {
  return !VERBS_WITHOUT_TARGET.test(command) && !/ --(?:file|store|tenant)\b/.test(command)
}

function quoteShellArgument(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
