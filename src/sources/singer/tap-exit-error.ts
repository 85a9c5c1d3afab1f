import { SyncError } from '../../contract/index.ts'

/** What a tap ended with, in words. What it said last has been redacted. */
export function toTapExitError(name: string, code: number, lastWord: string, doing = ''): SyncError {
  const how = code === 127 ? 'was not found, or something it needs was not'
    : code === 126 ? 'is not a program that may be run'
    : code >= 128 ? `was ended by a signal${code > 128 ? ` (${code - 128})` : ''}` : `ended with code ${code}`
  return new SyncError('CONNECTOR_FAILED', `${name} ${doing === '' ? '' : `${doing} `}${how}${lastWord === '' ? '.' : `: ${lastWord}`}`)
}
