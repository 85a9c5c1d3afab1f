import { SyncError } from '../../contract/index.ts'
import { serializeState } from '../../engine/check-page.ts'
import { DEFAULT_LIMITS, type SyncPlan } from '../../engine/sync-plan.ts'

/** Parses a state argument. `-` reads it from standard input, which keeps it out of the shell history. */
export async function parseStateArgument(
  argument: string,
  plan: Pick<SyncPlan, 'sync' | 'limits'> | { readonly sync: string },
): Promise<string> {
  const text = argument === '-' ? await readStandardInput() : argument
  let state: unknown
  try {
    state = JSON.parse(text)
  } catch (cause) {
    // The parser's message is left out because it quotes the input.
    throw new SyncError(
      'ARGUMENT_INVALID',
      `The state for ${plan.sync} is not valid JSON. Nothing was changed. In most shells, put it in single quotes: '{"page": 2}'.`,
      { cause },
    )
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
