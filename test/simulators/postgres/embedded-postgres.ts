import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, vi } from 'vitest'

/** The PostgreSQL that `realOrEmbeddedPostgres` runs in a folder, seen from outside. */
export class EmbeddedPostgres {
  readonly folder: string

  constructor(folder: string) {
    this.folder = folder
  }

  get url(): string {
    return readFileSync(join(this.folder, 'url'), 'utf8').trim()
  }

  /** Its data directory: elsewhere when the server's account has no access to the folder. */
  get home(): string {
    const note = join(this.folder, 'elsewhere')
    return existsSync(note) ? readFileSync(note, 'utf8') : this.folder
  }

  /** Pid of the server's main process; null when none is running. */
  get pid(): number | null {
    try {
      const pid = Number(readFileSync(join(this.home, 'data', 'postmaster.pid'), 'utf8').split('\n')[0])
      process.kill(pid, 0)
      return pid
    } catch {
      return null
    }
  }

  async gone(): Promise<void> {
    await vi.waitFor(() => expect(this.pid).toBeNull(), { timeout: 30_000, interval: 100 })
  }

  /** Stops it, even if it is in use, and removes its files. */
  async remove(): Promise<void> {
    const { pid, home, folder } = this
    if (pid !== null) process.kill(pid, 'SIGQUIT')
    await this.gone()
    for (const path of [home, folder]) rmSync(path, { recursive: true, force: true, maxRetries: 5 })
  }
}
