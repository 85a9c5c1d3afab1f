import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import {
  SyncError,
  type ImportedState,
  type JsonValue,
  type PartitionChange,
  type SyncRef,
} from '../../contract/index.ts'
import { serializeState } from '../../engine/check-page.ts'
import { DEFAULT_LIMITS, type SyncPlan } from '../../engine/sync-plan.ts'
import { parseJson } from '../../values/json.ts'

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

/** Reads the state file of another tool, without loss of digits. `-` reads it from standard input. */
export async function readStateFile(folder: string, file: string): Promise<JsonValue> {
  const text = file === '-' ? await readStandardInput() : readText(resolve(folder, file), file)
  try {
    return parseJson(text)
  } catch {
    // The parser's message is left out because it quotes the input.
    throw new SyncError('ARGUMENT_INVALID', `${file} is not valid JSON. Nothing was changed.`)
  }
}

function readText(path: string, file: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new SyncError('ARGUMENT_INVALID', `${file} cannot be read. Nothing was changed.`, { cause })
  }
}

/** As a page would store it. */
export function serializeImportedState(
  { sync }: SyncRef,
  { state, partitions = [] }: ImportedState,
  plan: SyncPlan | null,
): { readonly state: string; readonly partitions: readonly PartitionChange[] } {
  const { stateBytesMax } = plan?.limits ?? DEFAULT_LIMITS
  return {
    state: serializeState(sync, state, stateBytesMax),
    partitions: partitions.map(({ key, state: own }, index) => ({
      key,
      state: own === null ? null : serializeState(sync, own, stateBytesMax, `partitions[${index}]`),
    })),
  }
}

export async function readStandardInput(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
