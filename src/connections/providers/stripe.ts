import { defineProvider } from '../define-provider.ts'

export default defineProvider({
  name: 'stripe',
  title: 'Stripe',
  documentation: 'https://docs.stripe.com/connect/oauth-reference',
  source: 'stripe',
  oauth: {
    authorizeUrl: 'https://connect.stripe.com/oauth/authorize',
    tokenUrl: 'https://connect.stripe.com/oauth/token',
    scopes: ['read_write'],
    // Connect documents neither a code challenge nor a basic header. The client secret is the platform's secret key.
    pkce: 'unsupported',
    clientAuth: 'form',
    authorizeFields: { always_prompt: 'true' },
    refreshTokens: 'fixed',
    expiry: 'never',
    settingsFromTokens: { account_id: 'stripe_user_id' },
    revocation: {
      method: 'POST',
      url: 'https://connect.stripe.com/oauth/deauthorize',
      fields: { stripe_user_id: '{account_id}' },
    },
  },
  form: {
    steps: [
      'In the Stripe Dashboard, open Developers, then API keys.',
      'Select Create restricted key, and choose read access to the resources that you want to sync, and to Events and Connected accounts.',
      'Copy the key. It begins with rk_live_, or rk_test_ for test data.',
    ],
    fields: { api_key: { label: 'Restricted key', example: 'rk_live_…', isSecret: true } },
    auth: { kind: 'header', header: 'authorization', field: 'api_key', prefix: 'Bearer ' },
  },
  account: {
    url: 'https://api.stripe.com/v1/account',
    id: 'id',
    label: 'settings.dashboard.display_name',
  },
})
