// Generated from the folders by `npm run sources`. Do not edit.
import airtable from './providers/airtable.ts'
import apiKey from './providers/api-key.ts'
import basic from './providers/basic.ts'
import github from './providers/github.ts'
import githubApp from './providers/github-app.ts'
import hubspot from './providers/hubspot.ts'
import kraken from './providers/kraken.ts'
import linear from './providers/linear.ts'
import oauth2 from './providers/oauth2.ts'
import salesforce from './providers/salesforce.ts'
import servicenow from './providers/servicenow.ts'
import stripe from './providers/stripe.ts'
import x from './providers/x.ts'

/** Every provider, by name. */
export const PROVIDERS = {
  airtable,
  'api-key': apiKey,
  basic,
  github,
  'github-app': githubApp,
  hubspot,
  kraken,
  linear,
  oauth2,
  salesforce,
  servicenow,
  stripe,
  x,
}

export type ProviderName = keyof typeof PROVIDERS
