import { mount } from 'svelte';
import App from './App.svelte';
import './style.css';
import { followTheme } from './lib/theme.svelte';

followTheme();
const target = document.getElementById('page')!;
target.replaceChildren();
mount(App, { target });
