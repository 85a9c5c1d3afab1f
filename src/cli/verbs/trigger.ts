import { Command } from 'commander'
import type { VerbAction } from '../cli.ts'
import { sendSignal } from '../kit/send-signal.ts'
import { withStoreFlags, type TargetFlags } from '../kit/target.ts'

export function triggerVerb(): Command {
  return withStoreFlags(new Command('trigger'))
    .summary('ask for a cycle now')
    .description('Asks for one cycle of a sync. The `tidemark start` that watches this store runs it, whatever the schedule says.')
    .argument('<sync>', 'the sync')
}

export const trigger: VerbAction<[string, TargetFlags]> = (cli, name, flags) => sendSignal(cli, name, flags, 'trigger')
