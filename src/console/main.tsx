import { render } from 'preact';
import { App } from './app.tsx';
import { openSession } from './session.ts';

const place = document.getElementById('app');
if (place !== null) render(<App />, place);
void openSession();
