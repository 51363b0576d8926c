import { useMemo } from 'react';
import { cx } from './cx';
import { colour, layOut, type SqlToken } from './sqlText';

const looks: Record<SqlToken['kind'], string | undefined> = {
  keyword: 'font-medium text-info',
  string: 'text-ok',
  number: 'text-warn',
  comment: 'text-text-3 italic',
  name: undefined,
  sign: 'text-text-2',
  space: undefined,
};

/** A statement with colours. It is laid out in lines, which changes white space only. */
export function Sql({ text, className }: { text: string; className?: string }) {
  const tokens = useMemo(() => colour(layOut(text)), [text]);
  return (
    <pre tabIndex={0} className={cx('mono overflow-auto rounded-md border border-line bg-sunken p-3 leading-5 whitespace-pre-wrap [overflow-wrap:anywhere]', className)}>
      {tokens.map((token, index) => (
        <span key={index} className={looks[token.kind]}>
          {token.text}
        </span>
      ))}
    </pre>
  );
}
