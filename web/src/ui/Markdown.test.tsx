import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import Markdown from './Markdown';

const html = (text: string) => renderToStaticMarkup(<Markdown text={text} opening={'\ue000'} closing={'\ue001'} marked={(index, words) => <b>{[index, ':', words]}</b>} />);

describe('Markdown', () => {
  it('loads nothing and leads nowhere', () => {
    const out = html('![pixel](https://evil.example/p.png) [here](https://evil.example/) <img src="https://evil.example/x"> <script>alert(1)</script> https://evil.example/auto');
    expect(out).not.toMatch(/<(img|a|script|iframe|link|style|form)\b/);
    expect(out).not.toMatch(/<[^>]*\s(src|href|style)=/);
    expect(out).toContain('&lt;script&gt;');
  });
  it('marks claims inside of emphasis, lists and tables', () => {
    expect(html('Vienna has **\ue00018\ue001** orders.')).toContain('<strong><b>0:18</b></strong>');
    expect(html('- \ue0001\ue001\n- \ue0002\ue001')).toMatch(/<b>0:1<\/b>[\s\S]*<b>1:2<\/b>/);
    expect(html('| a |\n|---|\n| \ue0007\ue001 |')).toContain('<td><b>0:7</b></td>');
  });
});
