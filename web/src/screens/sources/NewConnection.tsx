import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useId, useRef, useState } from 'react';
import { api, newKey, type Schemas, take } from '~/api/client';
import { ApiError } from '~/api/errors';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { Field, Input, Select, Textarea } from '~/ui/Field';
import { Segments } from '~/ui/Segments';
import { say } from '~/ui/toast';
import { connections } from './queries';

const texts = t.sources.connection;

type Kind = Schemas['ConnectionKind'];
type Values = Record<'name' | 'endpoint' | 'region' | 'bucket' | 'prefix' | 'accessKeyId' | 'secretAccessKey' | 'host' | 'port' | 'database' | 'user' | 'password' | 'baseUrl' | 'token' | 'caCertificate' | 'uri' | 'warehouse' | 'clientId' | 'clientSecret', string>;
type Name = keyof Values;
type Auth = Schemas['HttpsAuth'];
type CatalogAuth = Schemas['IcebergAuth'];

const empty: Values = { name: '', endpoint: '', region: '', bucket: '', prefix: '', accessKeyId: '', secretAccessKey: '', host: '', port: '5432', database: '', user: '', password: '', baseUrl: '', token: '', caCertificate: '', uri: '', warehouse: '', clientId: '', clientSecret: '' };
const optional: Name[] = ['prefix', 'caCertificate', 'warehouse'];
const credentials: Record<Auth, Name[]> = { none: [], bearer: ['token'], basic: ['user', 'password'] };
const catalogCredentials: Record<CatalogAuth, Name[]> = { none: [], bearer: ['token'], client: ['clientId', 'clientSecret'] };
const fieldsOf: Record<Kind, (auth: Auth, catalogAuth: CatalogAuth) => Name[]> = {
  s3: () => ['endpoint', 'region', 'bucket', 'prefix', 'accessKeyId', 'secretAccessKey'],
  postgresql: () => ['host', 'port', 'database', 'user', 'password'],
  https: (auth) => ['baseUrl', ...credentials[auth], 'caCertificate'],
  iceberg: (_, auth) => ['uri', 'warehouse', ...catalogCredentials[auth], 'endpoint', 'region', 'bucket', 'prefix', 'accessKeyId', 'secretAccessKey', 'caCertificate'],
};
const secret: Name[] = ['secretAccessKey', 'password', 'token', 'clientSecret'];
/** Settings of a catalog that are those of its store. */
const ofStore: Name[] = ['endpoint', 'region', 'bucket', 'prefix', 'accessKeyId', 'secretAccessKey'];

function bodyOf(kind: Kind, values: Values, pathStyle: boolean, plain: boolean, auth: Auth, catalogAuth: CatalogAuth): Schemas['NewConnection'] {
  const { name, endpoint, region, bucket, prefix, accessKeyId, secretAccessKey, host, port, database, user, password, baseUrl, token, caCertificate, uri, warehouse, clientId, clientSecret } = values;
  const store = { endpoint, region, bucket, ...(prefix && { prefix }), pathStyle, accessKeyId, secretAccessKey };
  switch (kind) {
    case 's3':
      return { name, kind, s3: store };
    case 'postgresql':
      return { name, kind, postgresql: { host, port: Number(port), database, user, password, ...(plain && { sslMode: 'disable' as const }) } };
    case 'https':
      return { name, kind, https: { baseUrl, ...(auth === 'bearer' && { token }), ...(auth === 'basic' && { user, password }), ...(caCertificate && { caCertificate }) } };
    case 'iceberg':
      return {
        name,
        kind,
        iceberg: { uri, ...(warehouse && { warehouse }), ...(catalogAuth === 'bearer' && { token }), ...(catalogAuth === 'client' && { clientId, clientSecret }), ...(caCertificate && { caCertificate }), store },
      };
  }
}

/** Asks for the address and the credentials of another system. The service tries them before it stores anything. */
export function NewConnection({ onClose, onMade }: { onClose: () => void; onMade: (id: string) => void }) {
  const queries = useQueryClient();
  const form = useId();
  const key = useRef(newKey());
  const [kind, setKind] = useState<Kind>('s3');
  const [values, setValues] = useState(empty);
  const [pathStyle, setPathStyle] = useState(false);
  const [plain, setPlain] = useState(false);
  const [auth, setAuth] = useState<Auth>('none');
  const [catalogAuth, setCatalogAuth] = useState<CatalogAuth>('client');
  const [asked, setAsked] = useState(false);
  const create = useMutation({
    mutationFn: (body: Schemas['NewConnection']) => take(api.POST('/connections', { params: { header: { 'Idempotency-Key': key.current } }, body })),
    onSuccess: async (made) => {
      await queries.invalidateQueries({ queryKey: connections.queryKey, exact: true });
      onMade(made.id);
      say(texts.done(made.name));
    },
    onError: () => {
      // Another try with other values is another intention.
      key.current = newKey();
    },
  });
  const names: Name[] = ['name', ...fieldsOf[kind](auth, catalogAuth)];
  const missing = (name: Name) => !optional.includes(name) && values[name].trim() === '';
  const error = create.error instanceof ApiError ? create.error : undefined;
  const faultOf = (name: Name) => (asked && missing(name) ? texts.missing : (error?.field(name) ?? error?.field(`${kind}.${kind === 'iceberg' && ofStore.includes(name) ? 'store.' : ''}${name}`)));
  const known = names.some((name) => faultOf(name));
  const input = (name: Name, className?: string) => (
    <Field key={name} label={texts[name]} help={texts.help[name]} fault={faultOf(name)} {...(className && { className })}>
      {(field) => (
        <Input
          {...field}
          type={secret.includes(name) ? 'password' : 'text'}
          inputMode={name === 'port' ? 'numeric' : undefined}
          autoComplete={secret.includes(name) ? 'new-password' : 'off'}
          spellCheck={false}
          value={values[name]}
          placeholder={texts.placeholders[name]}
          onChange={(event) => setValues({ ...values, [name]: event.target.value })}
        />
      )}
    </Field>
  );
  const tick = (checked: boolean, onChange: (checked: boolean) => void, label: string, help: string) => (
    <label className="flex items-start gap-3">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} className="mt-1 accent-accent" />
      <span>
        <span className="block">{label}</span>
        <span className="block text-xs text-text-3">{help}</span>
      </span>
    </label>
  );
  const authority = (
    <Field label={texts.caCertificate} help={texts.help.caCertificate} fault={faultOf('caCertificate')}>
      {(field) => <Textarea {...field} rows={3} className="mono" spellCheck={false} value={values.caCertificate} onChange={(event) => setValues({ ...values, caCertificate: event.target.value })} />}
    </Field>
  );
  return (
    <Dialog
      open
      onClose={onClose}
      title={texts.title}
      footer={
        <>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button look="primary" type="submit" form={form} busy={create.isPending}>
            {texts.create}
          </Button>
        </>
      }
    >
      <form
        id={form}
        noValidate
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          setAsked(true);
          if (names.some(missing) || create.isPending) return;
          const trimmed = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, secret.includes(name as Name) ? value : value.trim()])) as Values;
          create.mutate(bodyOf(kind, trimmed, pathStyle, plain, auth, catalogAuth));
        }}
      >
        <p className="text-text-2">{texts.lead}</p>
        <div className="flex">
          <Segments
            label={texts.kind}
            value={kind}
            options={[
              ['s3', t.sources.kinds.s3],
              ['postgresql', t.sources.kinds.postgresql],
              ['https', t.sources.kinds.https],
              ['iceberg', t.sources.kinds.iceberg],
            ]}
            onChange={(next) => {
              setKind(next);
              setAsked(false);
              create.reset();
            }}
          />
        </div>
        {input('name')}
        {kind === 'iceberg' && (
          <>
            {input('uri')}
            {input('warehouse')}
            <Field label={texts.auth}>
              {(field) => (
                <Select {...field} value={catalogAuth} onChange={(event) => setCatalogAuth(event.target.value as CatalogAuth)}>
                  {(['client', 'bearer', 'none'] as const).map((one) => (
                    <option key={one} value={one}>
                      {texts.catalogAuths[one]}
                    </option>
                  ))}
                </Select>
              )}
            </Field>
            {catalogAuth === 'bearer' && input('token')}
            {catalogAuth === 'client' && (
              <div className="grid items-start gap-4 sm:grid-cols-2">
                {input('clientId')}
                {input('clientSecret')}
              </div>
            )}
            <p className="text-text-2">{texts.store}</p>
          </>
        )}
        {(kind === 's3' || kind === 'iceberg') && (
          <>
            {input('endpoint')}
            <div className="grid items-start gap-4 sm:grid-cols-2">
              {input('region')}
              {input('bucket')}
            </div>
            {input('prefix')}
            <div className="grid items-start gap-4 sm:grid-cols-2">
              {input('accessKeyId')}
              {input('secretAccessKey')}
            </div>
            {tick(pathStyle, setPathStyle, texts.pathStyle, texts.pathStyleHelp)}
          </>
        )}
        {kind === 'postgresql' && (
          <>
            <div className="grid items-start gap-4 sm:grid-cols-[1fr_120px]">
              {input('host')}
              {input('port')}
            </div>
            {input('database')}
            <div className="grid items-start gap-4 sm:grid-cols-2">
              {input('user')}
              {input('password')}
            </div>
            {tick(plain, setPlain, texts.plain, texts.plainHelp)}
          </>
        )}
        {kind === 'https' && (
          <>
            {input('baseUrl')}
            <Field label={texts.auth}>
              {(field) => (
                <Select {...field} value={auth} onChange={(event) => setAuth(event.target.value as Auth)}>
                  {(['none', 'bearer', 'basic'] as const).map((one) => (
                    <option key={one} value={one}>
                      {texts.auths[one]}
                    </option>
                  ))}
                </Select>
              )}
            </Field>
            {auth === 'bearer' && input('token')}
            {auth === 'basic' && (
              <div className="grid items-start gap-4 sm:grid-cols-2">
                {input('user')}
                {input('password')}
              </div>
            )}
            {authority}
          </>
        )}
        {kind === 'iceberg' && authority}
        {create.isError && !known && <Failure error={create.error} next={error?.code === 'FORBIDDEN' ? texts.forbidden : undefined} />}
      </form>
    </Dialog>
  );
}
