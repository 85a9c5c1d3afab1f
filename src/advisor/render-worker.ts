import { chooseStrategy, isDeclarative, findKnownApi, type Advice } from './choose-strategy.ts'
import type { Answers } from './answers.ts'
import { renderCodeWorker } from './render-code-worker.ts'
import type { KnownApiProfile } from './known-apis.ts'
import { renderRestWorker } from './render-rest-worker.ts'

/** Renders a starter worker that loads and type-checks as is. Its comments say what to fill in. */
export function renderWorker(answers: Answers): string {
  const advice = chooseStrategy(answers)
  const known = findKnownApi(answers)
  if (known !== null) return renderKnownApiWorker(advice, known)
  return isDeclarative(answers) ? renderRestWorker(advice, answers) : renderCodeWorker(advice, answers)
}

function renderKnownApiWorker(advice: Advice, { name: api, stream, database: name }: KnownApiProfile): string {
  const declared = advice.mode === 'pair' ? `source: ${stream}` : `...${stream}`
  return `import { Worker } from 'tidemark'\nimport { ${toFactoryName(api)} } from '${advice.source}'

// Secrets are referenced by name and read from .env or the environment.
const worker = new Worker({ name: '${api}' })
const ${name} = worker.database('${name}')

worker.${advice.mode === 'pair' ? 'track' : 'sync'}('${name}', {
  database: ${name},
  schedule: '${advice.schedule}',${advice.delta?.strategy === 'frontier' ? "\n  backfillSchedule: '1d', // finds deleted records" : ''}
  ${declared},
})

export default worker
`
}

/** The function that creates the source: `github-stars` is `githubStars`. */
function toFactoryName(api: string): string {
  return api.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}
