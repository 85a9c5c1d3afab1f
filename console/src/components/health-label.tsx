import type { Health } from '../../../src/runner/health.ts'

const HEALTH_LABELS: Record<Health, string> = {
  HEALTHY: 'Healthy',
  INITIALIZING: 'Initializing',
  WARNING: 'Warning',
  ERROR: 'Error',
  PAUSED: 'Paused',
}

export function HealthLabel({ health, isRunning = false }: { health: Health; isRunning?: boolean }) {
  return (
    <span className={`health health-${health.toLowerCase()}`}>
      <span className={isRunning ? 'health-dot running' : 'health-dot'} aria-hidden="true" />
      {HEALTH_LABELS[health]}
    </span>
  )
}
