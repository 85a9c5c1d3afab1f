import { defineProvider } from '../define-provider.ts'

const HOSTS = ['.my.salesforce.com', 'login.salesforce.com', 'test.salesforce.com']

export default defineProvider({
  name: 'salesforce',
  title: 'Salesforce',
  documentation: 'https://help.salesforce.com/s/articleView?id=xcloud.remoteaccess_oauth_web_server_flow.htm',
  source: 'salesforce',
  inputs: {
    login_host: {
      label: 'Login domain',
      hint: 'The domain that you sign in at. Use test.salesforce.com for a sandbox without My Domain.',
      example: 'acme.my.salesforce.com',
      hostSuffixes: HOSTS,
      default: 'login.salesforce.com',
    },
  },
  oauth: {
    authorizeUrl: 'https://{login_host}/services/oauth2/authorize',
    tokenUrl: 'https://{login_host}/services/oauth2/token',
    scopes: ['api', 'refresh_token'],
    pkce: 'supported',
    clientAuth: 'form',
    refreshTokens: 'optional',
    expiry: 'unstated',
    settingsFromTokens: { instance_url: 'instance_url' },
    revocation: {
      method: 'POST',
      url: 'https://{login_host}/services/oauth2/revoke',
      fields: { token: '{refresh_token}' },
      auth: 'none',
    },
  },
  account: {
    url: '{instance_url}/services/data/v60.0/query?q=SELECT+Id,Name+FROM+Organization',
    id: 'records.0.Id',
    label: 'records.0.Name',
  },
})
