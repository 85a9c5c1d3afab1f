import { SyncError } from '../../contract/index.ts'
import { serializeState } from '../../engine/check-page.ts'
import { DEFAULT_LIMITS, type SyncPlan } from '../../engine/sync-plan.ts'

/** A state somebody typed. `-` reads it from standard input, so that it stays out of the shell's history. */
export async function parseStateArgument(argument: string, plan: Pick<SyncPlan, 'sync' | 'limits'> | { readonly sync: string }): Promise<string> {
  const text = argument === '-' ? await readStandardInput() : argument
  let state: unknown
  try {
    state = JSON.parse(text)
  } catch (cause) {
    // Without the parser's words: they quote what they were given.
    throw new SyncError('ARGUMENT_INVALID', `The state for ${plan.sync} is not JSON. Nothing was changed. In most shells it stands in single quotes: '{"page": 2}'.`, { cause })
  }
  try {
    return serializeState(plan.sync, state, 'limits' in plan ? plan.limits.stateBytesMax : DEFAULT_LIMITS.stateBytesMax)
  } catch (error) {
    throw new SyncError('ARGUMENT_INVALID', `${(error as Error).message} Nothing was changed.`, { cause: error })
  }
}

export async function readStandardInput(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
