import { SyncError } from '../contract/index.ts'

/**
 * Imports an optional package. `purpose` begins the message of the error if that fails, such as "Reading from S3 needs".
 */
export async function importPackage<Module>(
  name: string,
  purpose: string,
  load: () => Promise<Module>,
): Promise<Module> {
  try {
    return await load()
  } catch (cause) {
    throw new SyncError('PACKAGE_UNFIT', `${purpose} the package ${name}. Run: npm install ${name}`, { cause })
  }
}
