import { locateStore } from '../../stores/drivers.ts'
import type { Cli } from '../cli.ts'
import type { Target } from './target.ts'
import { addTargetFlags } from './target-flags.ts'

/** The shell command that queries a table, with the flags that select the same store and tenant. */
export function formatQueryCommand({ targetFlags }: Cli, { settings }: Target, table: string): string {
  const isPlain = /^[a-z_][a-z0-9_]*$/i.test(table)
  const name = isPlain ? table : locateStore(settings.storeUrl, settings.folder).syntax.tableReference(table)
  const sql = `select * from ${name} limit 5`
  return addTargetFlags(`npx tidemark query ${name.includes('"') ? `'${sql}'` : `"${sql}"`}`, targetFlags)
}
