import { describe } from 'vitest'
import { judgeMutants } from './judge-mutants.ts'
import { MUTANTS } from './mutants.ts'

describe('the simulation finds planted bugs', () => judgeMutants(MUTANTS))
