import { Command } from 'commander'
import type { Act } from './cli.ts'
import { sendSignal } from './send-signal.ts'
import { withStoreFlags, type TargetFlags } from './target.ts'

export function triggerVerb(): Command {
  return withStoreFlags(new Command('trigger'))
    .summary('ask for a cycle now')
    .description('Asks for one cycle of a sync. The `tidemark start` that watches this store runs it, whatever the schedule says.')
    .argument('<sync>', 'the sync')
}

export const trigger: Act<[string, TargetFlags]> = (cli, name, flags) => sendSignal(cli, name, flags, 'trigger')
