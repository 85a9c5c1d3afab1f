import { Command } from 'commander'
import type { VerbAction } from '../cli.ts'
import { sendSignal } from '../kit/send-signal.ts'
import { withStoreFlags, type TargetFlags } from '../kit/target.ts'

export function triggerVerb(): Command {
  return withStoreFlags(new Command('trigger'))
    .summary('run a sync now')
    .description(
      'Requests one cycle of a sync now, regardless of its schedule. A running `tidemark start` on this store runs it.',
    )
    .argument('<sync>', 'the sync')
}

export const trigger: VerbAction<[string, TargetFlags]> = (cli, name, flags) => sendSignal(cli, name, flags, 'trigger')
