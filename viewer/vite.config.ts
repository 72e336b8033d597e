import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';

/** sha256 of the names and contents of all that the page is built from; `tests/viewing/test_page.py` works out the same. */
function stamp(): string {
  const files = ['index.html', 'package-lock.json', 'package.json', 'tsconfig.json', 'vite.config.ts', ...readdirSync('src').map(name => `src/${name}`)].sort();
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file}\0`).update(readFileSync(file)).update('\0');
  return hash.digest('hex');
}

/** One file: script and styles go into the page, so that it opens from disk and a policy can name them by hash. */
function oneFile(): Plugin {
  return {
    name: 'one-file',
    enforce: 'post',
    generateBundle(_, bundle) {
      const page = bundle['index.html'];
      if (page?.type !== 'asset') throw new Error('expected index.html');
      let script = '', style = '';
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === 'chunk') script += part.code.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
        else if (name.endsWith('.css')) style += String(part.source);
        if (name !== 'index.html') delete bundle[name];
      }
      page.source = String(page.source)
        .replace(/\s*<script[^>]*src=[^>]*><\/script>/g, '')
        .replace(/\s*<link[^>]*rel="stylesheet"[^>]*>/g, '')
        .replace('<meta charset="utf-8">', () => `<meta charset="utf-8">\n<meta name="pt2-sources" content="${stamp()}">\n<style>${style}</style>`)
        .replace('</body>', () => `<script type="module">${script}</script>\n</body>`);
    },
  };
}

export default defineConfig({
  base: './',
  build: { outDir: '../src/pt2kit/viewing/page', emptyOutDir: true, modulePreload: false, target: 'es2022', cssCodeSplit: false },
  plugins: [oneFile()],
});
