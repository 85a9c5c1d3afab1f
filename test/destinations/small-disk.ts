import { execFileSync } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A file system of a few megabytes, unmounted with the test. */
export class SmallDisk {
  readonly folder: string

  private constructor(folder: string) {
    this.folder = folder
  }

  static mount(megabytes: number, owner?: { readonly uid: number; readonly gid: number }): SmallDisk {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-disk-'))
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder], { stdio: 'ignore' })
    } catch {
      rmSync(folder, { recursive: true })
      throw new Error('This test mounts a small tmpfs: run it as root on Linux.')
    }
    // A server may still have a file open.
    onTestFinished(() => {
      execFileSync('umount', ['-l', folder])
      rmSync(folder, { recursive: true })
    })
    if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
    return new SmallDisk(folder)
  }

  grow(megabytes: number): void {
    execFileSync('mount', ['-o', `remount,size=${megabytes}m`, this.folder])
  }
}
