import { Command } from 'commander'
import type { VerbAction } from '../cli.ts'
import { sendSignal } from '../kit/send-signal.ts'
import { withStoreFlags, type TargetFlags } from '../kit/target.ts'

export function resumeVerb(): Command {
  return withStoreFlags(new Command('resume'))
    .summary('resume a paused sync')
    .description('Resumes a paused sync where it stopped. Also clears the retry backoff.')
    .argument('<sync>', 'the sync')
}

export const resume: VerbAction<[string, TargetFlags]> = (cli, name, flags) => sendSignal(cli, name, flags, 'resume')
