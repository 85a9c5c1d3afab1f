import { chooseStrategy, isDeclarative, knownOf, type Advice } from './choose-strategy.ts'
import type { Answers } from './answers.ts'
import { codeFile } from './code-file.ts'
import type { Known } from './known-apis.ts'
import { restFile } from './rest-file.ts'

/** A worker to begin with: it loads and type-checks as it is, and its comments say what to put in. */
export function workerFile(answers: Answers): string {
  const advice = chooseStrategy(answers)
  const known = knownOf(answers)
  if (known !== null) return knownFile(advice, known, answers.api!)
  return isDeclarative(answers) ? restFile(advice, answers) : codeFile(advice, answers)
}

function knownFile(advice: Advice, { stream, name, maker }: Known, api: string): string {
  const declared = advice.mode === 'pair' ? `source: ${stream}` : `...${stream}`
  return `import { Worker } from 'tidemark'\nimport { ${maker ?? api} } from '${advice.source}'

// Secrets are given by name, and read from .env or the environment.
const worker = new Worker({ name: '${api}' })
const ${name} = worker.database('${name}')

worker.${advice.mode === 'pair' ? 'track' : 'sync'}('${name}', {
  database: ${name},
  schedule: '${advice.schedule}',${advice.delta?.strategy === 'frontier' ? "\n  backfillSchedule: '1d', // finds what is gone" : ''}
  ${declared},
})

export default worker
`
}
