import { defineProvider } from '../define-provider.ts'

export default defineProvider({
  name: 'hubspot',
  title: 'HubSpot',
  documentation: 'https://developers.hubspot.com/docs/api-reference/auth-oauth-v3/guide',
  source: 'hubspot',
  oauth: {
    authorizeUrl: 'https://app.hubspot.com/oauth/authorize',
    tokenUrl: 'https://api.hubapi.com/oauth/v3/token',
    scopes: ['oauth', 'crm.objects.contacts.read', 'crm.objects.companies.read', 'crm.objects.deals.read'],
    pkce: 'supported',
    clientAuth: 'form',
    refreshTokens: 'fixed',
    expiry: 'stated',
    revocation: {
      method: 'DELETE',
      url: 'https://api.hubapi.com/oauth/v1/refresh-tokens/{refresh_token}',
      auth: 'none',
    },
  },
  form: {
    steps: [
      'In HubSpot, open Settings, then Integrations, then Private Apps.',
      'Create a private app, and add the read scopes of the objects that you want to sync.',
      'Open the tab Auth, and copy the access token. It begins with pat-.',
    ],
    fields: { access_token: { label: 'Access token', example: 'pat-eu1-…', isSecret: true } },
    auth: { kind: 'header', header: 'authorization', field: 'access_token', prefix: 'Bearer ' },
  },
  account: { url: 'https://api.hubapi.com/account-info/v3/details', id: 'portalId', label: 'uiDomain' },
})
