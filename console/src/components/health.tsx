import type { Health } from '../../../src/runner/health.ts'

const WORDS: Record<Health, string> = { HEALTHY: 'Healthy', INITIALIZING: 'Initializing', WARNING: 'Warning', ERROR: 'Error', PAUSED: 'Paused' }

export function HealthWord({ health, isRunning = false }: { health: Health; isRunning?: boolean }) {
  return (
    <span className={`health health-${health.toLowerCase()}`}>
      <span className={isRunning ? 'health-dot running' : 'health-dot'} aria-hidden="true" />
      {WORDS[health]}
    </span>
  )
}
