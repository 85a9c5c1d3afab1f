import { SyncError } from '../../contract/index.ts'

export const SIMULATORS_PACKAGE = '@tidemark/simulators'

/** Imports a module that needs the simulators. They are a package of their own, so that production does not install them. */
export async function importSimulators<Module>(load: () => Promise<Module>): Promise<Module> {
  try {
    return await load()
  } catch (cause) {
    if (!isMissing(cause)) throw cause
    throw new SyncError(
      'PACKAGE_UNFIT',
      `This needs the package ${SIMULATORS_PACKAGE}. Run: npm install --save-dev ${SIMULATORS_PACKAGE}`,
      { cause },
    )
  }
}

function isMissing(error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException
  return code === 'ERR_MODULE_NOT_FOUND' && message.includes(SIMULATORS_PACKAGE)
}
